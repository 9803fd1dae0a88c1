package v2

import (
	"strconv"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
)

// dialect is what 2.5.1 says in the words of its framework (recorded:
// v2-register-weight-text, v2-list-bad-bool).
type dialect struct{}

func (dialect) Form(_ *httpapi.Exchange, form string, list []result.Mismatch) string {
	return "org.springframework.validation.BeanPropertyBindingResult: " + strconv.Itoa(len(list)) + " errors\n" +
		strings.Join(result.FieldErrors(form, list, true), "\n")
}

func (dialect) Param(_ *httpapi.Exchange, m result.Mismatch) string {
	return result.ParamText(m, true)
}

func (dialect) Decode(e *result.DecodeError) string {
	return result.DecodeText(e, `(String)"`+e.Text+`"`)
}
