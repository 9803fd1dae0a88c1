package foreign

import (
	_ "embed"
	"strings"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

//go:embed home.html
var homePage []byte

// home answers the root of the context path, where Nacos has its console: the
// page says what runs here. Without the slash a browser is sent to it, and the
// root of the server is nobody's (recorded: console-root).
func (a *API) home(x *httpapi.Exchange) {
	switch path := x.Path(); {
	case path == "/":
		httpapi.NotFound(x)
	case strings.HasSuffix(path, "/"), strings.HasSuffix(path, ".html"):
		x.Answer(200, "text/html;charset=UTF-8", homePage)
	default:
		x.Redirect(path + "/")
	}
}
