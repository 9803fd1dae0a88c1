package v3

import (
	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/httpapi/result"
	"github.com/rollcall-registry/rollcall/internal/httpapi/values"
)

// authRoutes are the calls of users while authentication is off: any login succeeds,
// because fleets bring the passwords of their old server; and there are no users,
// roles and permissions, which can be read and not be changed.
func (a *API) authRoutes() []httpapi.Route {
	const user, role, permission = "/v3/auth/user", "/v3/auth/role", "/v3/auth/permission"
	grant := []string{"role", "resource", "action"}
	return []httpapi.Route{
		httpapi.Change("POST", user+"/login", httpapi.Open, a.login),

		httpapi.Get(user+"/list", resourceUsers, a.emptyPage),
		httpapi.Get(user+"/search", resourceUsers, a.emptySearch("username")),
		httpapi.Change("POST", user, resourceUsers, a.unchangeable("username", "password")),
		httpapi.Change("POST", user+"/admin", httpapi.Open, a.unchangeable()),
		httpapi.Change("PUT", user, resourceUsers, a.unchangeable("username", "newPassword")),
		httpapi.Change("DELETE", user, resourceUsers, a.unchangeable("username")),

		httpapi.Get(role+"/list", resourceRoles, a.emptyPage),
		httpapi.Get(role+"/search", resourceRoles, a.emptySearch("role")),
		httpapi.Change("POST", role, resourceRoles, a.unchangeable("role", "username")),
		httpapi.Change("DELETE", role, resourceRoles, a.unchangeable("role")),

		httpapi.Get(permission+"/list", resourcePermission, a.emptyPage),
		httpapi.Change("POST", permission, resourcePermission, a.unchangeable(grant...)),
		httpapi.Change("DELETE", permission, resourcePermission, a.unchangeable(grant...)),
	}
}

// login answers POST /auth/user/login, without the envelope.
func (a *API) login(x *httpapi.Exchange) {
	f := result.NewParams(x)
	username := f.Need("username")
	f.Need("password")
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	values.Login(x, username, a.Core.Now().Wall)
}

// emptyPage answers a list of which there are no items.
func (a *API) emptyPage(x *httpapi.Exchange) {
	f := result.NewParams(x)
	p := page{f.NeedPlainInt("pageNo"), f.NeedPlainInt("pageSize")}
	if err := f.Err(); err != nil {
		a.Fail(x, err)
		return
	}
	a.Data(x, append(p.begin(result.Begin(x.Scratch[:0]), 0), "[]}"...))
}

// emptySearch answers a search that must have that parameter and finds nothing.
func (a *API) emptySearch(param string) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		f := result.NewParams(x)
		f.Need(param)
		if err := f.Err(); err != nil {
			a.Fail(x, err)
			return
		}
		a.Data(x, append(result.Begin(x.Scratch[:0]), "[]"...))
	}
}

// unchangeable refuses a change, once the parameters are there that it needs.
func (a *API) unchangeable(params ...string) httpapi.Handler {
	return func(x *httpapi.Exchange) {
		f := result.NewParams(x)
		for _, param := range params {
			f.Need(param)
		}
		err := f.Err()
		if err == nil {
			err = &result.Fault{
				Status: 403, Code: result.AccessDenied,
				Data: "authentication is off on this server: users, roles and permissions cannot be changed",
			}
		}
		a.Fail(x, err)
	}
}
