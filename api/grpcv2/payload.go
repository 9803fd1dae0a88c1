package grpcv2

import (
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// The field numbers of the three messages. Source: nacos_grpc_service.proto.
const (
	payloadMetadata = 2
	payloadBody     = 3

	metadataType     = 3
	metadataHeaders  = 7
	metadataClientIP = 8

	anyValue = 2

	entryKey   = 1
	entryValue = 2
)

// Payload is the message that both methods carry in both directions. Its fields
// are parts of the memory that it was read from, and live as long as that.
type Payload struct {
	// Type names the JSON object in Body; it alone selects the decoder.
	Type string
	// ClientIP is what a client says its address is.
	ClientIP string
	// Body is the JSON object. Nothing has looked at it yet.
	Body []byte

	metadata []byte // the encoded message Metadata, for its headers
}

var (
	errNotUTF8 = errors.New("a string is not UTF-8")
	errNumber  = errors.New("a field has a number that no field can have")
	errStop    = errors.New("the caller has seen enough")
)

// Unmarshal reads a Payload as protobuf does: unknown fields are skipped, of
// repeated ones the last counts, and strings are UTF-8. The type URL of the body
// is ignored, since clients disagree on it.
func (p *Payload) Unmarshal(data []byte) error {
	*p = Payload{}
	err := eachField(data, func(number protowire.Number, value []byte) error {
		if number == payloadBody {
			return p.readBody(value)
		}
		p.metadata = merge(p.metadata, value)
		return p.readMetadata(value)
	}, payloadMetadata, payloadBody)
	if err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	return nil
}

func (p *Payload) readMetadata(metadata []byte) error {
	return eachField(metadata, func(number protowire.Number, value []byte) error {
		switch number {
		case metadataType:
			p.Type = alias(value)
		case metadataClientIP:
			p.ClientIP = alias(value)
		default:
			_, _, err := readEntry(value)
			return err
		}
		return checkUTF8(value)
	}, metadataType, metadataHeaders, metadataClientIP)
}

func (p *Payload) readBody(body []byte) error {
	const typeURL = 1
	return eachField(body, func(number protowire.Number, value []byte) error {
		if number == typeURL {
			return checkUTF8(value)
		}
		p.Body = value
		return nil
	}, typeURL, anyValue)
}

// Headers yields the headers in the order of the wire.
func (p *Payload) Headers() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		// Unmarshal has found the metadata in order.
		_ = eachField(p.metadata, func(_ protowire.Number, value []byte) error {
			key, text, _ := readEntry(value)
			if !yield(key, text) {
				return errStop
			}
			return nil
		}, metadataHeaders)
	}
}

// Header returns the value of a header, the last of several; names are case
// sensitive.
func (p *Payload) Header(name string) (value string, ok bool) {
	for k, v := range p.Headers() {
		if k == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// readEntry reads an entry of a map of strings.
func readEntry(entry []byte) (key, value string, err error) {
	err = eachField(entry, func(number protowire.Number, text []byte) error {
		if number == entryKey {
			key = alias(text)
		} else {
			value = alias(text)
		}
		return checkUTF8(text)
	}, entryKey, entryValue)
	return key, value, err
}

// eachField gives the fields with the wanted numbers to f, which are all of the
// wire type bytes, and skips the others.
func eachField(data []byte, f func(protowire.Number, []byte) error, wanted ...protowire.Number) error {
	for len(data) > 0 {
		number, wireType, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if number > protowire.MaxValidNumber {
			return errNumber
		}
		data = data[n:]
		if !contains(wanted, number) || wireType != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, wireType, data); n < 0 {
				return protowire.ParseError(n)
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if err := f(number, value); err != nil {
			return err
		}
	}
	return nil
}

func contains(list []protowire.Number, n protowire.Number) bool {
	for _, have := range list {
		if have == n {
			return true
		}
	}
	return false
}

// merge merges a repeated message field: protobuf's rule is that the
// concatenation of two encoded messages is their merger.
func merge(before, next []byte) []byte {
	if len(before) == 0 {
		return next
	}
	return append(before[:len(before):len(before)], next...)
}

func checkUTF8(b []byte) error {
	if !utf8.Valid(b) {
		return errNotUTF8
	}
	return nil
}

// alias returns the bytes as a string without copying them: whoever holds the
// string must not let the bytes be changed.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Head is a Payload without its body, to be sent.
type Head struct {
	Type     string
	ClientIP string
	Headers  map[string]string
}

// AppendHead appends an encoded Payload up to its body of size bytes, which must
// follow. The type URL of the body is left empty, as all servers do.
func AppendHead(b []byte, h *Head, size int) []byte {
	if n := h.size(); n > 0 {
		b = protowire.AppendTag(b, payloadMetadata, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(n))
		b = h.append(b)
	}
	b = protowire.AppendTag(b, payloadBody, protowire.BytesType)
	if size == 0 {
		return append(b, 0)
	}
	b = protowire.AppendVarint(b, uint64(fieldSize(anyValue, size)))
	b = protowire.AppendTag(b, anyValue, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(size))
}

// AppendPayload appends an encoded Payload.
func AppendPayload(b []byte, h *Head, body []byte) []byte {
	return append(AppendHead(b, h, len(body)), body...)
}

func (h *Head) append(b []byte) []byte {
	b = appendText(b, metadataType, h.Type)
	for k, v := range h.Headers {
		b = protowire.AppendTag(b, metadataHeaders, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(fieldSize(entryKey, len(k))+fieldSize(entryValue, len(v))))
		b = protowire.AppendTag(b, entryKey, protowire.BytesType)
		b = protowire.AppendString(b, k)
		b = protowire.AppendTag(b, entryValue, protowire.BytesType)
		b = protowire.AppendString(b, v)
	}
	return appendText(b, metadataClientIP, h.ClientIP)
}

// appendText appends a string field, which proto3 leaves out when it is empty.
func appendText(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendTag(b, number, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// size returns the length of the encoded message Metadata.
func (h *Head) size() int {
	n := 0
	if h.Type != "" {
		n += fieldSize(metadataType, len(h.Type))
	}
	for k, v := range h.Headers {
		n += fieldSize(metadataHeaders, fieldSize(entryKey, len(k))+fieldSize(entryValue, len(v)))
	}
	if h.ClientIP != "" {
		n += fieldSize(metadataClientIP, len(h.ClientIP))
	}
	return n
}

// fieldSize returns the length of a field of wire type bytes.
func fieldSize(number protowire.Number, size int) int {
	return protowire.SizeTag(number) + protowire.SizeBytes(size)
}
