package httpapi

// NoSuchAPI is the answer of /v1/ns to an unknown path and to a wrong method
// (live 1.4.8): 501, and the message names method and path.
func NoSuchAPI(x *Exchange) {
	x.ErrorPage(501, "no such api:"+x.Method()+":"+x.Path())
}

// NotFound is the answer of the other v1 paths, and of paths nobody serves:
// under the context path the error page of the application, else that of the
// container.
func NotFound(x *Exchange) {
	if x.inContext {
		x.ErrorPage(404, "No message available")
		return
	}
	x.Page(404, "Not Found")
}

// MethodNotSupported is the answer of the other v1 paths to a wrong method.
func MethodNotSupported(x *Exchange) {
	x.Caused(500, "Request method '"+x.Method()+"' not supported")
}
