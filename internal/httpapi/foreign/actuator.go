package foreign

import (
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// typeActuator is the content type of Spring Boot's actuator, in Nacos 1.4.8.
const typeActuator = "application/vnd.spring-boot.actuator.v3+json"

// health answers GET /actuator/health: the process serves.
func (a *API) health(x *httpapi.Exchange) {
	x.Answer(200, typeActuator, []byte(`{"status":"UP"}`))
}

// actuator answers GET /actuator with what there is below it.
func (a *API) actuator(x *httpapi.Exchange) {
	self := "http://" + x.Header("Host") + strings.TrimSuffix(x.Path(), "/")
	b := append(x.Scratch[:0], `{"_links":{`...)
	for n, link := range []struct{ name, path string }{
		{"self", ""}, {"health", "/health"}, {"prometheus", "/prometheus"},
	} {
		if n > 0 {
			b = append(b, ',')
		}
		b = registry.AppendJSONString(b, link.name)
		b = append(b, `:{"href":`...)
		b = registry.AppendJSONString(b, self+link.path)
		b = append(b, `,"templated":false}`...)
	}
	x.Scratch = append(b, "}}"...)
	x.Answer(200, typeActuator, x.Scratch)
}
