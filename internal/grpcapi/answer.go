package grpcapi

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
)

// call is one unary call. Nothing keeps it once it is answered.
type call struct {
	ctx    context.Context
	client *client
	who    *identity // nil before the client is registered
	*grpcv2.Payload
	answer *transport.Message
	route  *route
	code   int32 // of a failure
}

// route is what answers requests of one type.
type route struct {
	response string
	serve    func(*call) error
	// refuse appends the JSON of a failure that comes in the request's own type of
	// answer.
	refuse func([]byte, *grpcv2.Failure) []byte
}

// routes are the types that are answered. The others get an error: answers of
// clients and lock, AI and MCP requests, which clients send only to
// servers that announce these abilities.
var routes = map[string]*route{
	grpcv2.HealthCheck:        {grpcv2.HealthCheckResponse, (*call).health, grpcv2.AppendFailure},
	grpcv2.InstanceType:       {grpcv2.InstanceResponse, (*call).instance, grpcv2.AppendFailure},
	grpcv2.BatchInstance:      {grpcv2.BatchInstanceResponse, (*call).batch, grpcv2.AppendFailure},
	grpcv2.PersistentInstance: {grpcv2.InstanceResponse, (*call).persistent, grpcv2.AppendFailure},
	grpcv2.ServiceQuery:       {grpcv2.QueryServiceResponse, (*call).query, grpcv2.AppendFailure},
	grpcv2.SubscribeService:   {grpcv2.SubscribeServiceResponse, (*call).subscribe, grpcv2.AppendFailure},
	grpcv2.ServiceList:        {grpcv2.ServiceListResponse, (*call).list, grpcv2.AppendServicesRefused},
	grpcv2.FuzzyWatch:         {grpcv2.FuzzyWatchResponse, (*call).fuzzyWatch, grpcv2.AppendFailure},
	grpcv2.ConfigQuery:        {grpcv2.ConfigQueryResponse, (*call).configQuery, grpcv2.AppendConfigMissing},
	grpcv2.ConfigListen:       {grpcv2.ConfigListenResponse, (*call).configListen, grpcv2.AppendFailure},
	grpcv2.ConfigPublish:      {grpcv2.ConfigPublishResponse, (*call).configWrite, grpcv2.AppendFailure},
	grpcv2.ConfigRemove:       {grpcv2.ConfigRemoveResponse, (*call).configWrite, grpcv2.AppendFailure},
}

// forMembers reports whether a type of request is for servers among each other.
// Source: Nacos, the handlers with @InvokeSource.
func forMembers(requestType string) bool {
	switch requestType {
	case "ServerLoaderInfoRequest", "ServerReloadRequest", "DistroDataRequest", "MemberReportRequest", "ConfigChangeClusterSyncRequest":
		return true
	}
	return false
}

// Blocks implements transport.Session: what changes durable data waits for the disk.
// So does a deregistration, when an operator has overridden the instance; almost
// always none is overridden, and then it is answered at once.
func (c *client) Blocks(request *grpcv2.Payload) bool {
	switch request.Type {
	case grpcv2.PersistentInstance:
		return true
	case grpcv2.InstanceType:
		return c.api.core.Store().Counts().Overridden > 0 && bytes.Contains(request.Body, []byte(grpcv2.Deregister))
	default:
		return false
	}
}

// Answer implements transport.Session.
func (c *client) Answer(ctx context.Context, request *grpcv2.Payload, answer *transport.Message) {
	started := time.Now()
	x := c.api.calls.Get().(*call)
	*x = call{ctx: ctx, client: c, who: c.identity.Load(), Payload: request, answer: answer}
	kind := x.dispatch()
	c.api.observer.Answered(kind, int(x.code), time.Since(started))
	*x = call{}
	c.api.calls.Put(x)
}

// dispatch answers the call and returns its type, if that is known. The checks
// come in the order of the original, since each has its own answer.
func (x *call) dispatch() (kind string) {
	const other = "other"
	defer x.recovered()
	a := x.client.api
	if forMembers(x.Type) {
		x.fail(grpcv2.ResultFailure, grpcv2.CodeBadRequest, " invoke "+x.Type+" from sdk is forbidden")
		return other
	}
	if err := a.ready(); err != nil {
		x.fail(grpcv2.ResultFailure, grpcv2.CodeStarting, "Server is starting,please try later.")
		return other
	}
	if x.Type == grpcv2.ServerCheck {
		if x.who == nil { // it must not pass for one that does nothing
			x.client.touch(a.core.Now())
		}
		x.answer.Type = grpcv2.ServerCheckResponse
		x.answer.Buf = grpcv2.AppendServerCheck(x.answer.Buf, string(x.client.id))
		return grpcv2.ServerCheck
	}
	if x.route = x.find(); x.route == nil {
		x.fail(grpcv2.ResultFailure, grpcv2.CodeNoHandler, "RequestHandler Not Found")
		return other
	}
	if x.who == nil {
		x.turnAway()
		return x.Type
	}
	x.client.touch(a.core.Now())
	if err := x.route.serve(x); err != nil {
		x.fault(err)
	}
	if n, most := messageLen(x.answer), x.who.maxMessage(); n > most {
		x.fail(grpcv2.CodeServerError, grpcv2.CodeServerError,
			fmt.Sprintf("the answer has %d bytes, and this client takes no more than %d", n, most))
	}
	return x.Type
}

// turnAway answers a client that is not registered. The Go and Python SDKs take the
// code for it, in the answer to a health check, for that of a server which starts,
// and stay as they are; one whose channel dials anew by itself (Python 2.0) would
// never register again. So it gets another code when it keeps asking.
func (x *call) turnAway() {
	code := int32(grpcv2.CodeUnregistered)
	if x.Type == grpcv2.HealthCheck && x.client.stray(x.client.api.core.Now()) {
		code = grpcv2.CodeDisconnected
	}
	x.fail(grpcv2.ResultFailure, code, "Connection is unregistered.")
}

// messageLen is about how long a message is on the wire.
func messageLen(m *transport.Message) int { return len(m.Buf) + len(m.Tail) }

// find returns the route of the call, nil for types that nobody answers. Fuzzy
// watches are known to those who have abilities of 3.x, as the answer to their
// setup says; for others the server is one of 2.x.
func (x *call) find() *route {
	if x.Type == grpcv2.FuzzyWatch && (x.who == nil || !x.who.newer) {
		return nil
	}
	return routes[x.Type]
}

// fail answers with an ErrorResponse, in the place of what was written.
func (x *call) fail(result, code int32, message string) {
	x.code = code
	x.answer.Type, x.answer.Tail = grpcv2.ErrorResponse, nil
	x.answer.Buf = grpcv2.AppendFailure(x.answer.Buf[:transport.Headroom], &grpcv2.Failure{Result: result, Code: code, Message: message})
}

// refuse answers with a failure in the request's own type of answer.
func (x *call) refuse(code int32, message string) {
	x.code = code
	x.answer.Type, x.answer.Tail = x.route.response, nil
	f := grpcv2.Failure{Result: grpcv2.ResultFailure, Code: code, Message: message}
	x.answer.Buf = x.route.refuse(x.answer.Buf[:transport.Headroom], &f)
}

// succeed answers with success and nothing else.
func (x *call) succeed() {
	x.answer.Type = x.route.response
	x.answer.Buf = grpcv2.AppendSuccess(x.answer.Buf)
}

// health answers a health check.
func (x *call) health() error {
	if err := grpcv2.DecodeEmpty(x.Body); err != nil {
		return decoded(err)
	}
	x.succeed()
	return nil
}

// recovered turns a panic into an answer with an ID that stands in the log too.
func (x *call) recovered() {
	if p := recover(); p != nil {
		id := x.client.logPanic("a call", x.Payload, p)
		x.fail(grpcv2.CodeServerError, grpcv2.CodeServerError, "internal error, the server's log has it under id "+id)
	}
}

// recovered keeps a panic to the frame that it came of.
func (c *client) recovered(what string, p *grpcv2.Payload) {
	if r := recover(); r != nil {
		c.logPanic(what, p, r)
	}
}

func (c *client) logPanic(what string, p *grpcv2.Payload, r any) (id string) {
	id = fmt.Sprintf("%x-%d", c.api.requests.Add(1), c.api.core.Now().Wall)
	c.api.log.Error("panic recovered", "id", id, "where", what, "client_id", c.id, "type", shorten(p.Type), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	return id
}
