package foreign

import (
	_ "embed"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
)

//go:embed home.html
var homePage []byte

// home answers the root of the context path, where Nacos has its console: the
// page says what runs here. Without the slash a browser is sent to it, and the
// root of the server is nobody's (recorded: console-root).
func (a *API) home(x *httpapi.Exchange) {
	switch x.Path() {
	case "/nacos":
		x.Redirect("/nacos/")
	case "/", "":
		httpapi.NotFound(x)
	default:
		x.Answer(200, "text/html;charset=UTF-8", homePage)
	}
}
