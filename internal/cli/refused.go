package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// operatorAPI begins the paths of Rollcall's own API, which a server of another
// kind does not have.
const operatorAPI = "/rollcall/v1"

// refusedError is an answer of a server that is no success.
type refusedError struct {
	server, path string
	status       int
	text         string // the body, or the beginning of a long one
}

func (e *refusedError) Error() string {
	status := fmt.Sprintf("%d %s", e.status, http.StatusText(e.status))
	text, known := e.reason()
	if !known && e.foreign() {
		return fmt.Sprintf("%s answered %s for %s; it is no Rollcall server, or one of another version", e.server, status, e.path)
	}
	if text == "" {
		return fmt.Sprintf("%s answered %s", e.server, status)
	}
	return fmt.Sprintf("%s answered %s: %s", e.server, status, text)
}

// foreign reports whether a call of Rollcall's own API was not found.
func (e *refusedError) foreign() bool {
	return e.status == http.StatusNotFound && strings.HasPrefix(e.path, operatorAPI)
}

// elsewhere reports whether an error says that the server is no Rollcall.
func elsewhere(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok || !refused.foreign() {
		return false
	}
	_, known := refused.reason()
	return !known
}

// reason returns the sentence for people in an answer; known tells that it has a
// form that such a server gives.
func (e *refusedError) reason() (text string, known bool) {
	text = strings.TrimSpace(e.text)
	var own opsv1.Error
	if json.Unmarshal([]byte(text), &own) == nil && own.Error != "" {
		return own.Error, true
	}
	if cause, ok := strings.CutPrefix(text, "caused: "); ok { // Nacos 1.x
		return strings.TrimSuffix(cause, ";"), true
	}
	return text, false
}
