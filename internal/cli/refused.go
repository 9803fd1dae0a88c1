package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// operatorAPI begins the paths of Rollcall's own API, which a server of another
// kind does not have.
const operatorAPI = "/rollcall/v1"

// shownText bounds what is shown of what a server says, in columns.
const shownText = 400

// refusedError is an answer of a server that is no success.
type refusedError struct {
	server, path string
	status       int
	text         string // the body, or the beginning of a long one
	nameless     bool   // whether nobody had logged in
}

func (e *refusedError) Error() string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", e.status, http.StatusText(e.status)))
	text, known := e.reason()
	if !known && e.foreign() {
		return fmt.Sprintf("%s answered %s for %s; it is no Rollcall server, or one of another version", e.server, status, e.path)
	}
	if text != "" {
		text = ": " + cut(printable(strings.Join(strings.Fields(text), " ")), shownText)
	}
	if e.nameless && e.forbids() {
		text += "; log in with --" + flagUser + " and --" + flagPassword
	}
	return fmt.Sprintf("%s answered %s%s", e.server, status, text)
}

// forbids reports whether the server wants another login, or any.
func (e *refusedError) forbids() bool {
	return e.status == http.StatusForbidden || e.status == http.StatusUnauthorized
}

// foreign reports whether a call of Rollcall's own API was not found.
func (e *refusedError) foreign() bool {
	return e.unknownPath() && strings.HasPrefix(e.path, operatorAPI)
}

// unknownPath reports whether the server does not have what was called, or not any
// more: Nacos 3.x answers 410 for calls of before, and all versions 501 for unknown ones
// of the naming API. What is not found by a call that is there has a text of its own.
func (e *refusedError) unknownPath() bool {
	switch e.status {
	case http.StatusGone, http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return true
	case http.StatusNotFound:
		_, known := e.reason()
		return !known
	default:
		return false
	}
}

// elsewhere reports whether an error says that the server is no Rollcall.
func elsewhere(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	return ok && refused.foreign()
}

// told are the forms in which servers say in JSON what is wrong.
type told struct {
	Error     string `json:"error"` // of Rollcall's own API; in the form of a container a name of the status
	Code      *int   `json:"code"`  // of Nacos 2.x and 3.x, with the next two
	Message   string `json:"message"`
	Data      any    `json:"data"`
	Timestamp any    `json:"timestamp"` // of the container in which Nacos runs, with error and message
}

// sentence is what is wrong, for people.
func (t *told) sentence() string {
	detail, _ := t.Data.(string)
	switch {
	case t.Timestamp != nil && t.Message != "" && t.Message != "No message available":
		var inner told // Nacos 3.x puts one form into the other
		if json.Unmarshal([]byte(t.Message), &inner) == nil && inner.Message != "" {
			return inner.Message
		}
		return t.Message
	case t.Code != nil && detail != "":
		return t.Message + ": " + detail
	case t.Code != nil:
		return t.Message
	case t.Timestamp != nil:
		return ""
	default:
		return t.Error
	}
}

// reason returns the sentence for people in an answer; known tells that it has a form
// in which servers say what is wrong with a call that they have.
func (e *refusedError) reason() (text string, known bool) {
	text = strings.TrimSpace(e.text)
	var form told
	if json.Unmarshal([]byte(text), &form) == nil && (form.Error != "" || form.Code != nil) {
		return form.sentence(), form.Timestamp == nil
	}
	if cause, ok := strings.CutPrefix(text, "caused: "); ok { // Nacos 1.x
		return strings.TrimSuffix(cause, ";"), true
	}
	if strings.HasPrefix(text, "<") { // a page of a proxy or a container
		return "", false
	}
	return text, isNotThere(text)
}

// isNotThere reports whether what a call that the server has asks for is not there.
func (e *refusedError) isNotThere() bool {
	return e.status == http.StatusNotFound && !e.unknownPath() || isNotThere(strings.TrimSpace(e.text))
}

// isNotThere reports whether a text is one by which servers of Nacos say that there is
// no such instance or service: there is no code for it before 2.x.
func isNotThere(text string) bool {
	text = strings.TrimPrefix(text, "caused: ")
	return strings.HasPrefix(text, "no ") && strings.Contains(text, " found")
}
