package values

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// checkerJSON is a probe as 1.x sends it.
type checkerJSON struct {
	Type         registry.CheckType `json:"type"`
	Path         string             `json:"path"`
	Headers      string             `json:"headers"`
	ExpectedCode *int               `json:"expectedResponseCode"`
	User         string             `json:"user"`
	Password     string             `json:"pwd"`
	Command      string             `json:"cmd"`
}

// defaultHTTPCode is what an HTTP probe expects that names no code. Source: Nacos
// healthcheck.impl.Http.
const defaultHTTPCode = 200

// ParseChecker reads a probe. As in 1.4.8 a type that is missing or unknown is
// NONE, and only what is no JSON object is refused.
func ParseChecker(text string) (registry.HealthCheck, error) {
	var c checkerJSON
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return registry.HealthCheck{}, malformedChecker(err)
	}
	switch c.Type {
	case registry.CheckTCP:
		return registry.HealthCheck{Type: registry.CheckTCP}, nil
	case registry.CheckHTTP:
		code := defaultHTTPCode
		if c.ExpectedCode != nil {
			code = *c.ExpectedCode
		}
		return registry.HealthCheck{Type: registry.CheckHTTP, Path: c.Path, Headers: c.Headers, ExpectedCode: code}, nil
	case registry.CheckMySQL:
		return registry.HealthCheck{Type: registry.CheckMySQL, User: c.User, Password: c.Password, Command: c.Command}, nil
	case registry.CheckNone:
	}
	return registry.HealthCheck{Type: registry.CheckNone}, nil
}

func malformedChecker(err error) error {
	reason := "it is no JSON object"
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		reason = "its field " + wrong.Field + " is a " + wrong.Value
	}
	return registry.Refuse(registry.InvalidMetadata, "healthChecker", "", "Param 'healthChecker' is illegal, %s.", reason)
}

// AppendChecker appends a cluster's probe as JSON.
func AppendChecker(b []byte, c registry.HealthCheck) []byte {
	b = append(b, `{"type":`...)
	b = registry.AppendJSONString(b, string(c.Type))
	switch c.Type {
	case registry.CheckHTTP:
		b = append(b, `,"path":`...)
		b = registry.AppendJSONString(b, c.Path)
		b = append(b, `,"headers":`...)
		b = registry.AppendJSONString(b, c.Headers)
		b = append(b, `,"expectedResponseCode":`...)
		b = strconv.AppendInt(b, int64(c.ExpectedCode), 10)
	case registry.CheckMySQL:
		b = append(b, `,"user":`...)
		b = registry.AppendJSONString(b, c.User)
		b = append(b, `,"pwd":`...)
		b = registry.AppendJSONString(b, c.Password)
		b = append(b, `,"cmd":`...)
		b = registry.AppendJSONString(b, c.Command)
	case registry.CheckTCP, registry.CheckNone:
	}
	return append(b, '}')
}
