package v1

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// authRoutes are the calls of users while authentication is off: any login
// succeeds, because fleets bring the passwords of their old server; and there are
// no users, roles and permissions, which can be read and not be changed.
func (a *API) authRoutes() []httpapi.Route {
	const base = "/v1/auth"
	user, role := []string{"username"}, []string{"role", "username"}
	permission := []string{"role", "resource", "action"}
	return []httpapi.Route{
		change("POST", base+"/login", httpapi.Open, a.login),
		change("POST", base+"/users/login", httpapi.Open, a.login),

		get(base+"/users", resourceUsers, a.emptyPage),
		get(base+"/users/search", resourceUsers, a.emptySearch("username")),
		change("POST", base+"/users", resourceUsers, a.unchangeable("username", "password")),
		change("PUT", base+"/users", resourceUsers, a.unchangeable("username", "newPassword")),
		change("DELETE", base+"/users", resourceUsers, a.unchangeable(user...)),

		get(base+"/roles", resourceRoles, a.emptyPage),
		get(base+"/roles/search", resourceRoles, a.emptySearch("role")),
		change("POST", base+"/roles", resourceRoles, a.unchangeable(role...)),
		change("DELETE", base+"/roles", resourceRoles, a.unchangeable("role")),

		get(base+"/permissions", resourcePermissions, a.emptyPage),
		change("POST", base+"/permissions", resourcePermissions, a.unchangeable(permission...)),
		change("DELETE", base+"/permissions", resourcePermissions, a.unchangeable(permission...)),
	}
}

// tokenTTL is how long clients are told that a token is good. Source: Nacos
// AuthConfigs, token.expire.seconds.
const tokenTTL = 18000 * time.Second

// login answers POST /auth/login. The token is never looked at while
// authentication is off; clients only need one, and some gateways drop every
// instance when they have none.
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
	token := openToken(username, time.UnixMilli(a.core.Now().Wall).Add(tokenTTL))
	x.SetHeader("Authorization", "Bearer "+token)
	b := append(x.Scratch[:0], `{"accessToken":"`...)
	b = append(b, token...)
	b = append(b, `","tokenTtl":`...)
	b = strconv.AppendInt(b, int64(tokenTTL/time.Second), 10)
	b = append(b, `,"globalAdmin":true,"username":`...)
	b = registry.AppendJSONString(b, username)
	x.Scratch = append(b, '}')
	x.JSON(200, x.Scratch)
}

// openToken returns an unsecured JWT (RFC 7519, 6): consoles read the claims, and
// nothing takes it for a proof.
func openToken(username string, expires time.Time) string {
	claims := registry.AppendJSONString([]byte(`{"sub":`), username)
	claims = append(claims, `,"exp":`...)
	claims = strconv.AppendInt(claims, expires.Unix(), 10)
	claims = append(claims, '}')
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
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
