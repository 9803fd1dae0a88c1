// Package golden replays recorded conversations with real Nacos servers against
// a server under test, and reports every answer that differs. The recordings are
// in testdata; testdata/SOURCE.md tells where they come from.
//
// What counts as equal:
//
//   - the status, and the content type without its parameters in lower case;
//   - a JSON body by value: the same keys, kinds and values; 1 equals 1.0;
//   - any other body byte for byte;
//   - names that are fresh in each replay count as the placeholders they stand
//     for.
//
// What a step names as volatile is compared less strictly: a key by the kind of
// its value only; "*" by status, type and the shape of keys; "body" by the
// status alone. Arrays under a key that a step names as unordered, and those
// under "hosts" always, are compared without regard to order; the empty name
// means arrays that are no value of a key.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// A Case is one recorded conversation. Its steps are played in order.
type Case struct {
	ID    string `json:"id"`
	About string `json:"about"`
	Steps []Step `json:"steps"`
}

// A Step is one request and the answer that was recorded for it.
type Step struct {
	Method    string   `json:"method"`
	Path      string   `json:"path"` // sent as it is, with what query it holds
	Query     params   `json:"query"`
	Form      params   `json:"form"` // url-encoded body; wins over Body
	Body      *string  `json:"body"`
	Headers   headers  `json:"headers"`
	Wait      float64  `json:"wait"` // seconds before the request
	Volatile  []string `json:"volatile"`
	Unordered []string `json:"unordered"`
	Expect    *Answer  `json:"expect"` // nil: the answer does not count
}

// An Answer is a response in the form that is compared.
type Answer struct {
	Status int       `json:"status"` // 0: there was no answer, and Body says why
	Type   string    `json:"type"`
	JSON   jsonValue `json:"json"`
	Body   string    `json:"body"`
}

// jsonValue is a decoded JSON document, absent if the body was none.
type jsonValue struct {
	value   any
	present bool
}

func (v *jsonValue) UnmarshalJSON(data []byte) error {
	value, err := decodeJSON(data)
	*v = jsonValue{value, true}
	return err
}

// decodeJSON decodes one document with its numbers as they were written.
func decodeJSON(data []byte) (any, error) {
	if !json.Valid(data) {
		return nil, errors.New("not one JSON document")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	err := dec.Decode(&value)
	return value, err
}

// params are request parameters in the order of the recording.
type params []param

type param struct{ name, value string }

// UnmarshalJSON reads an object of strings, other scalars, or lists of them.
func (p *params) UnmarshalJSON(data []byte) error {
	return eachMember(data, func(name string, value any) {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			*p = append(*p, param{name, fmt.Sprint(one)})
		}
	})
}

// headers are request headers in the order of the recording.
type headers []param

// UnmarshalJSON reads an object of strings.
func (h *headers) UnmarshalJSON(data []byte) error {
	return eachMember(data, func(name string, value any) {
		*h = append(*h, param{name, fmt.Sprint(value)})
	})
}

// eachMember calls f for each member of a JSON object in order. It takes null
// as an object without members.
func eachMember(data []byte, f func(name string, value any)) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	start, err := dec.Token()
	if err != nil || start == nil {
		return err
	}
	if start != json.Delim('{') {
		return fmt.Errorf("%v where an object should begin", start)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return err
		}
		f(fmt.Sprint(name), value)
	}
	return nil
}

// Cases reads all *.json files below root, in the order of their paths.
func Cases(root fs.FS) ([]Case, error) {
	var cases []Case
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".json" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		var c Case
		if err := json.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		cases = append(cases, c)
		return nil
	})
	return cases, err
}

// Exceptions reads a list of case ids in which the server differs on purpose.
// A line is an id and the reason; # begins a comment line.
func Exceptions(text string) map[string]string {
	except := make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, _ := strings.Cut(line, " ")
		except[id] = strings.TrimSpace(reason)
	}
	return except
}
