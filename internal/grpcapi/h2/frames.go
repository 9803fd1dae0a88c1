package h2

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http2"

	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

const frameHeaderLen = 9

// appendFrame appends the head of a frame whose payload of size bytes must follow.
func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, id uint32, size int) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, id)
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendFrame(b, http2.FrameSettings, 0, 0, 6*len(settings))
	for _, s := range settings {
		b = binary.BigEndian.AppendUint16(b, uint16(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

func appendSettingsAck(b []byte) []byte {
	return appendFrame(b, http2.FrameSettings, http2.FlagSettingsAck, 0, 0)
}

func appendPing(b []byte, ack bool, data [8]byte) []byte {
	var flags http2.Flags
	if ack {
		flags = http2.FlagPingAck
	}
	b = appendFrame(b, http2.FramePing, flags, 0, len(data))
	return append(b, data[:]...)
}

func appendWindowUpdate(b []byte, id uint32, n int) []byte {
	b = appendFrame(b, http2.FrameWindowUpdate, 0, id, 4)
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendReset(b []byte, id uint32, code http2.ErrCode) []byte {
	b = appendFrame(b, http2.FrameRSTStream, 0, id, 4)
	return binary.BigEndian.AppendUint32(b, uint32(code))
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode, text string) []byte {
	text = text[:min(len(text), goAwayText)]
	b = appendFrame(b, http2.FrameGoAway, 0, 0, 8+len(text))
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, text...)
}

// Header blocks consist of literals and of entries of the static table alone, so
// that they are the same on every connection and need no memory there. Numbers are
// indexes of the static table. Source: RFC 7541, 6 and appendix A.
const (
	indexedStatus200   = 0x80 | 8
	literalStatus      = 8    // without indexing, the name indexed
	literalContentType = 0x0f // the same, with the rest of 31 in a second byte
	contentTypeRest    = 31 - 15
	literalNewName     = 0
	// tableSizeZero says that the dynamic table is not used. It comes first in the
	// first block of a connection, and makes every change of the client's setting
	// meaningless.
	tableSizeZero = 0x20
)

// appendText appends a text of a header block: its length in seven bits, then
// itself, not compressed.
func appendText(b []byte, s string) []byte {
	const most = 1<<7 - 1
	n := len(s)
	if n < most {
		return append(append(b, byte(n)), s...)
	}
	b = append(b, most)
	for n -= most; n >= 1<<7; n >>= 7 {
		b = append(b, byte(n)|1<<7)
	}
	return append(append(b, byte(n)), s...)
}

func appendField(b []byte, name, value string) []byte {
	return appendText(appendText(append(b, literalNewName), name), value)
}

// appendAnswerHead appends the block with which every answer begins.
func appendAnswerHead(b []byte, httpStatus int) []byte {
	if httpStatus == 200 {
		b = append(b, indexedStatus200)
	} else {
		b = appendText(append(b, literalStatus), strconv.Itoa(httpStatus))
	}
	return appendText(append(b, literalContentType, contentTypeRest), "application/grpc")
}

// appendStatus appends the fields with which every answer ends. Whoever is refused
// for the compression of his request is told what is accepted.
func appendStatus(b []byte, s transport.Status) []byte {
	b = appendField(b, "grpc-status", strconv.FormatUint(uint64(s.Code), 10))
	if s.Message != "" {
		b = appendField(b, "grpc-message", percentEncode(s.Message))
	}
	return b
}

// percentEncode writes a text as gRPC wants it in a header: printable ASCII as it
// is, all other bytes of its UTF-8 as %XX.
func percentEncode(s string) string {
	if len(s) > maxStatusText {
		s = s[:maxStatusText]
	}
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	plain := func(c byte) bool { return c >= ' ' && c <= '~' && c != '%' }
	n := 0
	for n < len(s) && plain(s[n]) {
		n++
	}
	if n == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	b := append(make([]byte, 0, len(s)+32), s[:n]...)
	for ; n < len(s); n++ {
		if c := s[n]; plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}
