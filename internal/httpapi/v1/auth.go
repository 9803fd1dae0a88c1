package v1

import (
	"strconv"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
)

// authRoutes are the calls of users while authentication is off: any login
// succeeds, because fleets bring the passwords of their old server; and there are
// no users, roles and permissions, which can be read and not be changed.
func (a *API) authRoutes() []httpapi.Route {
	const base = "/v1/auth"
	user, role := []string{"username"}, []string{"role", "username"}
	permission := []string{"role", "resource", "action"}
	return []httpapi.Route{
		httpapi.Change("POST", base+"/login", httpapi.Open, a.login),
		httpapi.Change("POST", base+"/users/login", httpapi.Open, a.login),

		httpapi.Get(base+"/users", resourceUsers, a.emptyPage),
		httpapi.Get(base+"/users/search", resourceUsers, a.emptySearch("username")),
		httpapi.Change("POST", base+"/users", resourceUsers, a.unchangeable("username", "password")),
		httpapi.Change("PUT", base+"/users", resourceUsers, a.unchangeable("username", "newPassword")),
		httpapi.Change("DELETE", base+"/users", resourceUsers, a.unchangeable(user...)),

		httpapi.Get(base+"/roles", resourceRoles, a.emptyPage),
		httpapi.Get(base+"/roles/search", resourceRoles, a.emptySearch("role")),
		httpapi.Change("POST", base+"/roles", resourceRoles, a.unchangeable(role...)),
		httpapi.Change("DELETE", base+"/roles", resourceRoles, a.unchangeable("role")),

		httpapi.Get(base+"/permissions", resourcePermissions, a.emptyPage),
		httpapi.Change("POST", base+"/permissions", resourcePermissions, a.unchangeable(permission...)),
		httpapi.Change("DELETE", base+"/permissions", resourcePermissions, a.unchangeable(permission...)),
	}
}

// login answers POST /auth/login.
func (a *API) login(x *httpapi.Exchange) {
	p := x.Params()
	username, err := p.Bound("username")
	if err == nil {
		_, err = p.Bound("password")
	}
	if err != nil {
		a.fail(x, err)
		return
	}
	values.Login(x, username, a.core.Now().Wall)
}

// emptyPage answers a list of which there are no items.
func (a *API) emptyPage(x *httpapi.Exchange) {
	number, _, err := boundPage(x.Params())
	if err != nil {
		a.fail(x, err)
		return
	}
	b := append(x.Scratch[:0], `{"totalCount":0,"pageNumber":`...)
	b = strconv.AppendInt(b, int64(number), 10)
	x.Scratch = append(b, `,"pagesAvailable":0,"pageItems":[]}`...)
	x.JSON(200, x.Scratch)
}

// emptySearch answers a search that must have that parameter and finds nothing.
func (a *API) emptySearch(param string) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		if _, err := x.Params().Bound(param); err != nil {
			a.fail(x, err)
			return
		}
		x.JSON(200, []byte("[]"))
	}
}

// unchangeable refuses a change, once the parameters are there that it needs.
func (a *API) unchangeable(params ...string) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		for _, param := range params {
			if _, err := x.Params().Bound(param); err != nil {
				a.fail(x, err)
				return
			}
		}
		x.Text(403, "authentication is off on this server: users, roles and permissions cannot be changed")
	}
}
