package httpapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Handler answers one request. It may block; it must not keep x, or a string
// that x gave out, after it has returned.
type Handler func(x *Exchange)

// Resource names what a route touches, for authorization.
type Resource string

const (
	// Open needs no permission.
	Open Resource = "open"
	// Naming is the service that the request names.
	Naming Resource = "naming"
)

// Action is how a route touches its resource.
type Action string

// The two actions, spelt as in stored permissions.
const (
	Read  Action = "r"
	Write Action = "w"
)

// Route ties methods of a path to a handler.
type Route struct {
	// Methods are upper case, at least one, each of GET, HEAD, POST, PUT, PATCH,
	// DELETE, OPTIONS.
	Methods []string
	// Path is absolute, without the context path and a trailing slash. A segment
	// {name} matches any one segment (see Exchange.PathValue); a path without
	// such segments wins over one with.
	Path string
	// Resource and Action are what the caller needs a permission for; both are
	// required.
	Resource Resource
	Action   Action
	Handler  Handler
	// MaxBodyBytes, if not 0, is the largest body of a request, instead of that
	// of the server. Such a body is not kept in memory: the handler reads it from
	// [Exchange.BodyReader] as it arrives, and the parameters are those of the
	// query alone.
	MaxBodyBytes int64
}

// Get returns the route of a GET that reads.
func Get(path string, resource Resource, h Handler) Route {
	return Route{Methods: []string{"GET"}, Path: path, Resource: resource, Action: Read, Handler: h}
}

// Change returns the route of a call that changes something.
func Change(method, path string, resource Resource, h Handler) Route {
	return Route{Methods: []string{method}, Path: path, Resource: resource, Action: Write, Handler: h}
}

// Group is the manners of all paths at or below a prefix, which the generations
// of the API differ in. The longest prefix counts.
type Group struct {
	// Prefix is a path without the context path, such as /v1/ns; empty is
	// everything.
	Prefix string
	// Gate, if set, runs before all else, also for unknown paths. It answers and
	// returns true to end the request.
	Gate func(x *Exchange) bool
	// NoRoute answers requests for unknown paths, WrongMethod those for a known
	// path that has no such method.
	NoRoute, WrongMethod Handler
	// Strict leaves HEAD and OPTIONS to WrongMethod unless a route names the method
	// or a browser asks whether it may send one. Without it HEAD runs the GET
	// handler and OPTIONS lists the methods.
	Strict bool
	// Multipart takes the text fields of multipart/form-data for parameters, as 2.x
	// and 3.x do. Without it such a body is refused when the query says something, and
	// not read when it does not.
	Multipart bool
	// Private leaves out the headers by which web pages of other origins may read
	// answers, whatever Config.CORS says.
	Private bool
}

// Hooks are called around every handler. A nil hook is left out.
type Hooks struct {
	// Authorize runs before the handler of a known route whose resource is not
	// Open. It answers and returns false to refuse.
	Authorize func(x *Exchange) bool
	// Observe runs after the answer is known; took is the time since the request
	// was complete. It must be quick. The Path of the route is a label of small
	// variety: an unknown path has that of its group, such as /v1/ns/*, and a
	// request that cannot be read has (unreadable).
	Observe func(route *Route, status int, took time.Duration)
}

// Router finds the handler of a request. It is immutable.
type Router struct {
	contextPath string
	hooks       Hooks
	exact       map[string]*endpoint
	patterns    []pattern
	groups      []*groupRoutes // longest prefix first
}

// endpoint is what is registered for one path.
type endpoint struct {
	group  *groupRoutes
	routes [methodCount]*Route
}

// pattern is an endpoint whose path has variable segments.
type pattern struct {
	segments []string
	*endpoint
}

// groupRoutes is a group and the routes that stand for its failures.
type groupRoutes struct {
	Group
	noRoute, wrongMethod Route
}

// NewRouter returns a router for the given context path (may be empty) or every
// fault of the arguments. One group must have the empty prefix.
func NewRouter(contextPath string, hooks Hooks, groups []Group, routes ...[]Route) (*Router, error) {
	r := &Router{contextPath: contextPath, hooks: hooks, exact: map[string]*endpoint{}}
	var faults []error
	for _, g := range groups {
		if g.NoRoute == nil || g.WrongMethod == nil {
			faults = append(faults, fmt.Errorf("group %q: no NoRoute or WrongMethod", g.Prefix))
		}
		r.groups = append(r.groups, newGroupRoutes(g))
	}
	slices.SortFunc(r.groups, func(a, b *groupRoutes) int { return len(b.Prefix) - len(a.Prefix) })
	if n := len(r.groups); n == 0 || r.groups[n-1].Prefix != "" {
		return nil, errors.Join(append(faults, errors.New("no group with the empty prefix"))...)
	}
	for _, route := range slices.Concat(routes...) {
		if err := r.add(&route); err != nil {
			faults = append(faults, fmt.Errorf("route %v %s: %w", route.Methods, route.Path, err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return r, nil
}

func newGroupRoutes(g Group) *groupRoutes {
	label := g.Prefix + "/*"
	return &groupRoutes{
		Group:       g,
		noRoute:     Route{Path: label, Resource: Open, Action: Read, Handler: g.NoRoute},
		wrongMethod: Route{Path: label, Resource: Open, Action: Read, Handler: g.WrongMethod},
	}
}

// add registers a route or says what is wrong with it.
func (r *Router) add(route *Route) error {
	switch {
	case route.Handler == nil:
		return errors.New("no handler")
	case route.Resource == "" || route.Action != Read && route.Action != Write:
		return errors.New("no resource or action")
	case route.Path != "/" && !validPath(route.Path):
		return errors.New("not a clean absolute path")
	case len(route.Methods) == 0:
		return errors.New("no methods")
	case route.MaxBodyBytes < 0:
		return errors.New("a negative MaxBodyBytes")
	}
	e := r.endpoint(route.Path)
	for _, name := range route.Methods {
		m := methodOf(name)
		if m == methodOther || m == methodTrace {
			return fmt.Errorf("method %s is not served", name)
		}
		if e.routes[m] != nil {
			return fmt.Errorf("method %s is there already", name)
		}
		e.routes[m] = route
	}
	return nil
}

// endpoint returns the endpoint of a path, made if it is not there.
func (r *Router) endpoint(path string) *endpoint {
	if !strings.Contains(path, "{") {
		e := r.exact[path]
		if e == nil {
			e = &endpoint{group: r.groupOf(path)}
			r.exact[path] = e
		}
		return e
	}
	segments := strings.Split(path, "/")
	for _, p := range r.patterns {
		if slices.Equal(p.segments, segments) {
			return p.endpoint
		}
	}
	e := &endpoint{group: r.groupOf(path)}
	r.patterns = append(r.patterns, pattern{segments, e})
	return e
}

// groupOf returns the group of a path without context path.
func (r *Router) groupOf(path string) *groupRoutes {
	for _, g := range r.groups {
		if rest, ok := strings.CutPrefix(path, g.Prefix); ok && (rest == "" || rest[0] == '/') {
			return g
		}
	}
	return r.groups[len(r.groups)-1]
}

// resolve finds the route of x before its body is read: that of its path and
// method, or the one that stands for there being none.
func (r *Router) resolve(x *Exchange) {
	x.route = &r.groups[len(r.groups)-1].noRoute
	if x.method >= methodTrace {
		return
	}
	if x.endpoint, x.pathFault = r.find(x); x.pathFault == faultNone {
		x.route = r.groupFor(x, x.endpoint).route(x, x.endpoint)
	}
}

// serve runs the handler of x, which is resolved, or the answer for there being
// none.
func (r *Router) serve(x *Exchange) {
	switch {
	case x.method >= methodTrace:
		r.refuseMethod(x)
		return
	case x.pathFault != faultNone:
		r.refusePath(x, x.pathFault)
		return
	}
	e := x.endpoint
	group := r.groupFor(x, e)
	if group.Gate != nil && group.Gate(x) {
		return
	}
	if x.cors = x.conn.server.cfg.CORS && !group.Private; x.cors {
		x.allowOrigin()
	}
	if e != nil && x.method == methodOptions && x.route == &group.wrongMethod && (!group.Strict || x.cors && x.preflight()) {
		x.answerOptions(e)
		return
	}
	if x.route.Resource != Open && r.hooks.Authorize != nil && !r.hooks.Authorize(x) {
		return
	}
	x.route.Handler(x)
}

// find returns the endpoint of the path of x, or nil, or why the path is refused.
// It also sets the inner path of x. The first look-up allocates nothing.
func (r *Router) find(x *Exchange) (*endpoint, fault) {
	x.inner, x.inContext = r.innerPath(x.path)
	if e := r.exact[x.inner]; e != nil {
		return e, faultNone
	}
	decoded, f := decodePath(x.path)
	if f == faultNone {
		f = pathFault(decoded)
	}
	if f != faultNone {
		return nil, f
	}
	x.inner, x.inContext = r.innerPath(decoded)
	if e := r.exact[x.inner]; e != nil {
		return e, faultNone
	}
	return r.findPattern(x), faultNone
}

// innerPath strips the context path and one trailing slash.
func (r *Router) innerPath(path string) (inner string, inContext bool) {
	if rest, ok := strings.CutPrefix(path, r.contextPath); ok && r.contextPath != "" && (rest == "" || rest[0] == '/') {
		path, inContext = rest, true
	}
	if n := len(path); n > 1 && path[n-1] == '/' {
		path = path[:n-1]
	}
	if path == "" {
		path = "/"
	}
	return path, inContext
}

// findPattern matches the inner path of x against the paths with variables.
func (r *Router) findPattern(x *Exchange) *endpoint {
	for i := range r.patterns {
		if x.matchPath(r.patterns[i].segments) {
			return r.patterns[i].endpoint
		}
	}
	return nil
}

func (r *Router) groupFor(x *Exchange, e *endpoint) *groupRoutes {
	if e != nil {
		return e.group
	}
	return r.groupOf(x.inner)
}

// route returns the route of endpoint e for the method of x, or the one that
// stands for there being none.
func (g *groupRoutes) route(x *Exchange, e *endpoint) *Route {
	switch {
	case e == nil:
		return &g.noRoute
	case e.routes[x.method] != nil:
		return e.routes[x.method]
	case x.method == methodHead && !g.Strict && e.routes[methodGet] != nil:
		return e.routes[methodGet]
	default:
		return &g.wrongMethod
	}
}

// refusePath answers for a path that the original's firewall or container
// refuses.
func (r *Router) refusePath(x *Exchange, f fault) {
	if f == faultEncoded {
		x.Page(400, f.message())
		return
	}
	x.ErrorPage(500, f.message())
}

// refuseMethod answers for a method that no route can have, as the original's
// container does (live 1.4.8: route-methods).
func (r *Router) refuseMethod(x *Exchange) {
	if x.method == methodTrace {
		x.Page(405, "Method Not Allowed")
		return
	}
	MethodNotSupported(x)
}

// unreadable is the route that requests which cannot be read are counted under.
var unreadable = Route{Path: "(unreadable)", Resource: Open, Action: Read}

// method is a request method as an index of endpoint.routes.
type method uint8

const (
	methodGet method = iota
	methodHead
	methodPost
	methodPut
	methodPatch
	methodDelete
	methodOptions
	methodTrace
	methodOther
	methodCount
)

var methodNames = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

func methodOf(name string) method {
	switch name {
	case "GET":
		return methodGet
	case "HEAD":
		return methodHead
	case "POST":
		return methodPost
	case "PUT":
		return methodPut
	case "PATCH":
		return methodPatch
	case "DELETE":
		return methodDelete
	case "OPTIONS":
		return methodOptions
	case "TRACE":
		return methodTrace
	default:
		return methodOther
	}
}
