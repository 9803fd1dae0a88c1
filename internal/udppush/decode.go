package udppush

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// ackType is the type of an acknowledgement.
const ackType = "push-ack"

// decodeAck reads an acknowledgement: {"type":"push-ack","lastRefTime":"1","data":""}.
// Java and Go send the number as a string, Node as a number; some clients leave
// data out. ok is false for all else.
func decodeAck(b []byte) (number int64, ok bool) {
	if len(b) == 0 || b[0] != '{' || !gjson.ValidBytes(b) {
		return 0, false
	}
	if gjson.GetBytes(b, "type").Str != ackType {
		return 0, false
	}
	field := gjson.GetBytes(b, "lastRefTime")
	text := field.Str
	if field.Type == gjson.Number {
		text = field.Raw
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && number > 0
}
