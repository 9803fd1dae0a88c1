package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Content types of answers.
const (
	typeText = "text/plain;charset=UTF-8"
	typeJSON = "application/json"
	typeHTML = "text/html;charset=UTF-8"
)

var okBody = []byte("ok")

// OK answers 200 with the two bytes "ok" (trap 1: clients compare them).
func (x *Exchange) OK() { x.answer.set(200, x.textType(), okBody) }

// Text answers plain text.
func (x *Exchange) Text(status int, text string) {
	x.answer.set(status, x.textType(), bytesOf(text))
}

// textType is the type of a text answer: the first one that Accept names if that
// is application/json, else text/plain. The original echoes whatever comes first,
// text/html too, which would make an error text that repeats a parameter a page
// (reference http-api-v1 1.4).
func (x *Exchange) textType() string {
	accept := x.head.get("Accept")
	if bytes.HasPrefix(accept, []byte(typeJSON)) && (len(accept) == len(typeJSON) || strings.IndexByte(",; ", accept[len(typeJSON)]) >= 0) {
		return typeJSON
	}
	return typeText
}

// JSON answers a JSON body. The body must not change until the answer is
// written; x.Scratch and cached bytes that never change are such.
func (x *Exchange) JSON(status int, body []byte) { x.answer.set(status, typeJSON, body) }

// JSONParts answers JSON that consists of three parts, each under the condition of
// JSON. A large one may be shared with other answers: it is not copied.
func (x *Exchange) JSONParts(status int, begin, middle, end []byte) {
	x.answer.set(status, typeJSON, begin)
	x.answer.more = [2][]byte{middle, end}
}

// Answer answers any body, under the condition of JSON. contentType may be empty.
func (x *Exchange) Answer(status int, contentType string, body []byte) {
	x.answer.set(status, contentType, body)
}

// Empty answers a status without a body.
func (x *Exchange) Empty(status int) { x.answer.set(status, "", nil) }

// Redirect answers 302 to a path of ours.
func (x *Exchange) Redirect(location string) {
	x.Empty(http.StatusFound)
	x.SetHeader("Location", location)
}

// SetHeader adds a header to the answer. Line breaks in value become blanks.
func (x *Exchange) SetHeader(name, value string) {
	h := append(x.answer.headers, name...)
	h = append(h, ": "...)
	for i := range len(value) {
		if c := value[i]; c == '\r' || c == '\n' || c == 0 {
			h = append(h, ' ')
		} else {
			h = append(h, c)
		}
	}
	x.answer.headers = append(h, "\r\n"...)
}

// Status returns the status of the answer so far, 0 if there is none.
func (x *Exchange) Status() int { return x.answer.status }

// Caused answers an error as 1.4.8 does: "caused: <message>;" for each message
// of a chain of causes.
func (x *Exchange) Caused(status int, messages ...string) {
	b := x.Scratch[:0]
	for _, m := range messages {
		b = append(b, "caused: "...)
		b = append(b, m...)
		b = append(b, ';')
	}
	x.Scratch = b
	x.answer.set(status, x.textType(), b)
}

// RefuseParam answers err in the form of 1.4.8 and returns true, if it is a
// *ParamError.
func (x *Exchange) RefuseParam(err error) bool {
	var fault *ParamError
	if !errors.As(err, &fault) {
		return false
	}
	x.Caused(fault.Status(), fault.Causes()...)
	return true
}

// errorPage is the JSON of the original's container for errors outside of a
// handler.
type errorPage struct {
	Timestamp string `json:"timestamp"`
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Message   string `json:"message"`
	Path      string `json:"path"`
}

// ErrorPage answers the error page of the original's container, as JSON, or as
// HTML to a client that asks for that.
func (x *Exchange) ErrorPage(status int, message string) {
	if x.wantsHTML() {
		x.Page(status, message)
		return
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(errorPage{
		Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000+00:00"),
		Status:    status,
		Error:     http.StatusText(status),
		Message:   message,
		Path:      x.path,
	})
	if err != nil {
		panic("httpapi: an error page of plain strings must encode: " + err.Error())
	}
	x.answer.set(status, typeJSON, bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}))
}

func (x *Exchange) wantsHTML() bool {
	return bytes.Contains(x.head.get("Accept"), []byte("text/html"))
}

// Page answers a small HTML page: what the original's container says of requests
// that reach no application.
func (x *Exchange) Page(status int, message string) {
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	x.answer.set(status, typeHTML, []byte("<!doctype html><html lang=\"en\"><head><title>"+title+
		"</title></head><body><h1>"+title+"</h1><p>"+html.EscapeString(message)+"</p></body></html>"))
}

// allowOrigin adds the CORS headers of an answer to a request of another origin:
// every origin may read every answer of Nacos's APIs (reference http-api-v1 1.1), but
// not with the cookies and certificates of the reader: a token is a parameter or a
// header, which a foreign page does not have.
func (x *Exchange) allowOrigin() {
	if origin := x.head.get("Origin"); len(origin) > 0 {
		x.SetHeader("Access-Control-Allow-Origin", alias(origin))
	}
}

// preflight reports whether the request is a browser's question whether it may
// send another one.
func (x *Exchange) preflight() bool {
	return x.method == methodOptions && len(x.head.get("Origin")) > 0 &&
		len(x.head.get("Access-Control-Request-Method")) > 0
}

// corsMaxAge is how long a browser may remember a preflight, in seconds.
const corsMaxAge = "18000"

// answerOptions answers an OPTIONS request to a known path.
func (x *Exchange) answerOptions(e *endpoint) {
	x.Empty(200)
	if x.preflight() && x.cors {
		x.SetHeader("Access-Control-Allow-Methods", x.Header("Access-Control-Request-Method"))
		if wanted := x.Header("Access-Control-Request-Headers"); wanted != "" {
			x.SetHeader("Access-Control-Allow-Headers", wanted)
		}
		x.SetHeader("Access-Control-Max-Age", corsMaxAge)
		return
	}
	x.SetHeader("Allow", e.allow())
}

// allow lists the methods of an endpoint.
func (e *endpoint) allow() string {
	var names []string
	for m, route := range e.routes {
		if route != nil {
			names = append(names, methodNames[m])
		}
	}
	if e.routes[methodGet] != nil && e.routes[methodHead] == nil {
		names = append(names, "HEAD")
	}
	return strings.Join(append(names, "OPTIONS"), ",")
}
