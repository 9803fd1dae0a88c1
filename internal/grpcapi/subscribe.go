package grpcapi

import (
	"slices"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
	"github.com/rollcall-registry/rollcall/internal/grpcapi/transport"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// watch is a client's part in one service: its subscription, and the push that
// waits for it or was sent. It is guarded by the mutex of the client.
type watch struct {
	// sub is the subscription as the store has it; nil while there is none.
	sub *registry.Subscriber
	// held counts the calls about the service that are not answered yet: no push
	// may overtake an answer.
	held int
	// queued: a push waits to be sent. view is the state to be told, or an older one;
	// changed is when it first changed since the last push, zero when it did not.
	queued  bool
	view    *registry.View
	changed registry.Instant
	// sent is the ID of the push that is not acknowledged yet, 0 when there is
	// none; told is what it tells of.
	sent uint64
	told registry.Instant
	// failures counts the pushes that failed since the last one that did not.
	failures int
}

// maxWatches bounds the subscriptions of one connection. A gateway that subscribes
// to everything has some thousands.
const maxWatches = 1 << 16

// subscribe answers SubscribeServiceRequest, which also ends subscriptions. The
// service need not be there.
func (x *call) subscribe() error {
	q, err := grpcv2.DecodeSubscribe(x.Body)
	if err != nil {
		return decoded(err)
	}
	if err := checkLookup(&q.Service, q.Clusters.Value); err != nil {
		return err
	}
	switch {
	case isBlank(q.Name.Value):
		x.blank("serviceName")
		return nil
	case isBlank(q.Group.Value):
		x.blank("groupName")
		return nil
	}
	key := keyOf(&q.Service)
	if q.Subscribe {
		err = x.join(key, q.Clusters.Value)
	} else {
		err = x.part(key)
	}
	if err != nil {
		return err
	}
	// After the subscription, so that no change falls between the two unseen.
	tail, err := x.client.api.lookup(key, q.Clusters.Value, false)
	if err != nil {
		return err
	}
	head := x.head(&q.Service, q.Clusters)
	x.answer.Type, x.answer.Tail = x.route.response, tail
	x.answer.Buf = grpcv2.AppendSubscribeHead(x.answer.Buf, &head)
	return nil
}

// join subscribes the client, or changes the clusters that it subscribed to. Only
// a new subscription gets a push of its own.
func (x *call) join(key registry.ServiceKey, clusters string) error {
	c, core := x.client, x.client.api.core
	if !x.who.naming {
		return c.closed()
	}
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	w, err := c.watch(x.answer, key)
	if err != nil {
		return err
	}
	before := w.sub // changed only with c.subscribing held
	wanted := c.subscriberKey(x.who, clusters)
	if before != nil && before.SubscriberKey == wanted {
		return nil
	}
	err = core.Subscribe(x.ctx, c.cause("subscribe"), &registry.Subscriber{
		SubscriberKey: wanted, Service: key, Protocol: registry.ProtocolGRPC, App: x.who.app,
	})
	if err != nil {
		return err
	}
	sub := core.Store().Subscriber(key, wanted)
	if sub == nil || !c.setSubscription(w, sub) {
		return c.closed()
	}
	if before != nil {
		return core.Unsubscribe(x.ctx, c.cause("subscribe"), key, before.SubscriberKey)
	}
	c.api.later(sub, welcomeDelay, registry.Instant{})
	return nil
}

// part ends the client's subscription. Without one it does nothing.
func (x *call) part(key registry.ServiceKey) error {
	c := x.client
	if !x.who.naming {
		return c.closed()
	}
	c.subscribing.Lock()
	defer c.subscribing.Unlock()
	sub := c.dropSubscription(key)
	if sub == nil {
		return nil
	}
	return c.api.core.Unsubscribe(x.ctx, c.cause("unsubscribe"), key, sub.SubscriberKey)
}

// closed is the refusal of a connection that owns nothing.
func (c *client) closed() error {
	return registry.Refuse(registry.ClientClosed, "", string(c.id), "connection %s is closed", c.id)
}

// watch returns the client's part in a service, which it makes if need be, and
// holds its pushes back until answer has been written.
func (c *client) watch(answer *transport.Message, key registry.ServiceKey) (*watch, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, c.closed()
	}
	w := c.watches[key]
	if w == nil {
		if len(c.watches) >= maxWatches {
			return nil, registry.Refuse(registry.LimitExceeded, "", "", "a connection may subscribe to %d services", maxWatches)
		}
		w = &watch{}
		if c.watches == nil {
			c.watches = map[registry.ServiceKey]*watch{}
		}
		c.watches[key.Clone()] = w
	}
	c.holdUntilWritten(answer, w, key)
	return w, nil
}

// hold holds the pushes of a service back until answer has been written, if the
// client subscribed to the service.
func (c *client) hold(answer *transport.Message, key registry.ServiceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[key]; w != nil {
		c.holdUntilWritten(answer, w, key)
	}
}

// holdUntilWritten is called with c.mu held.
func (c *client) holdUntilWritten(answer *transport.Message, w *watch, key registry.ServiceKey) {
	w.held++
	if w.sub != nil {
		key = w.sub.Service // whose memory is not the request's
	} else {
		key = key.Clone()
	}
	answer.Written = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.held--
		switch {
		case w.held > 0:
		case w.queued:
			c.offer()
		case w.sub == nil && c.watches[key] == w:
			delete(c.watches, key)
		}
	}
}

// setSubscription notes the subscription of a watch, and reports whether the
// client is still there.
func (c *client) setSubscription(w *watch, sub *registry.Subscriber) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.sub = sub
	return !c.gone
}

// dropSubscription forgets the subscription to a service and what waits for it,
// and returns it; nil when there was none.
func (c *client) dropSubscription(key registry.ServiceKey) *registry.Subscriber {
	sub, unanswered := c.takeSubscription(key)
	if unanswered != nil {
		unanswered.settle(gone)
	}
	return sub
}

// takeSubscription forgets the subscription to a service. It returns it, and the
// push that is not acknowledged yet; nil when there is none.
func (c *client) takeSubscription(key registry.ServiceKey) (*registry.Subscriber, settler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watches[key]
	if w == nil || w.sub == nil {
		return nil, nil
	}
	sub, unanswered := w.sub, c.waiting[w.sent].asker
	if w.queued {
		c.ready = slices.DeleteFunc(c.ready, func(r *watch) bool { return r == w })
	}
	delete(c.waiting, w.sent)
	*w = watch{held: w.held}
	if w.held == 0 {
		delete(c.watches, key)
	}
	return sub, unanswered
}
