package httpapi

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"slices"
)

// Params returns the parameters of query and form body.
func (x *Exchange) Params() *Params {
	if !x.paramsParsed {
		x.paramsParsed = true
		x.params.parse(bytesOf(x.query))
		if x.takesForm() && len(x.body) > 0 && isForm(x.head.get("Content-Type")) {
			x.params.parse(x.body)
		}
	}
	return &x.params
}

// takesForm reports whether the body of the method may be a form.
func (x *Exchange) takesForm() bool {
	switch x.method {
	case methodPost, methodPut, methodPatch, methodDelete:
		return true
	default:
		return false
	}
}

// isForm reports whether a body of that content type is read as a form: a form
// type in any spelling, or none (1.4.8 needs the type; its clients send it, hand
// made ones do not).
func isForm(contentType []byte) bool {
	t := mediaType(contentType)
	return len(t) == 0 || bytes.EqualFold(t, []byte("application/x-www-form-urlencoded"))
}

// isMultipart reports whether a body of that content type is a form of parts.
func isMultipart(contentType []byte) bool {
	return bytes.EqualFold(mediaType(contentType), []byte("multipart/form-data"))
}

// mediaType returns a content type without its parameters.
func mediaType(contentType []byte) []byte {
	t, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.TrimSpace(t)
}

// isCompressed reports whether a Content-Encoding says that the body is compressed.
// Any other value means nothing: clients of Nacos 1.x name their charset there.
func isCompressed(coding []byte) bool {
	if len(coding) == 0 || isName(coding, "UTF-8") {
		return false
	}
	for _, name := range []string{"gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"} {
		if hasToken(coding, name) {
			return true
		}
	}
	return false
}

// judgeBody looks at a body before it arrives, and refuses one that would be read for
// what it is not, or not at all. inParts: it is a form of parts.
func (c *conn) judgeBody() (inParts bool, f *requestFault) {
	x := c.x
	if isCompressed(x.head.get("Content-Encoding")) {
		return false, refused(415, "the request body is compressed: send it as it is, without Content-Encoding")
	}
	if !x.takesForm() || x.route.MaxBodyBytes > 0 || !isMultipart(x.head.get("Content-Type")) {
		return false, nil
	}
	if c.server.router.groupFor(x, x.endpoint).Multipart {
		return true, nil
	}
	if x.query == "" { // the call says which parameter it lacks, as in the original
		return false, nil
	}
	return false, refused(415, "a multipart body is not read here: send its fields as application/x-www-form-urlencoded")
}

// readParts makes the fields of a multipart body parameters, after those of the query.
func (c *conn) readParts() *requestFault {
	x := c.x
	_, options, err := mime.ParseMediaType(alias(x.head.get("Content-Type")))
	if err != nil || options["boundary"] == "" {
		return refused(400, "the Content-Type of the multipart body names no boundary")
	}
	// Its fields are copied out of the body, so they are smaller than that.
	size := len(x.body) + bytes.MinRead
	if size > keepBytes && !c.reserveBody(c.reserved+int64(size)) {
		return refused(503, "the server has too many large request bodies in hand")
	}
	x.paramsParsed = true
	x.params.parse(bytesOf(x.query))
	x.params.decoded = slices.Grow(x.params.decoded, size)
	parts := multipart.NewReader(bytes.NewReader(x.body), options["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF { // a wrapped one is an end without the last boundary
			return nil
		}
		if err != nil {
			return refused(400, "the multipart body is malformed")
		}
		if f := x.params.addPart(part); f != nil {
			return f
		}
	}
}

// addPart adds one field of a multipart body.
func (p *Params) addPart(part *multipart.Part) *requestFault {
	switch {
	case part.FormName() == "":
		return refused(400, "a part of the multipart body has no name")
	case part.FileName() != "":
		return refused(400, "the multipart body has a file, and no call takes one")
	case len(p.pairs) >= maxParams:
		return refused(400, "the multipart body has too many parts")
	}
	start := len(p.decoded)
	value := bytes.NewBuffer(p.decoded)
	if _, err := value.ReadFrom(part); err != nil {
		return refused(400, "the multipart body is malformed")
	}
	p.decoded = value.Bytes()
	p.pairs = append(p.pairs, pair{part.FormName(), validText(p.decoded[start:])})
	return nil
}
