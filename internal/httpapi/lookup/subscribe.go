package lookup

import (
	"errors"
	"net/netip"

	"github.com/rollcall-registry/rollcall/internal/httpapi"
	"github.com/rollcall-registry/rollcall/internal/naming"
	"github.com/rollcall-registry/rollcall/internal/registry"
)

// PacketRequest is what a look-up says of UDP packets. Its fields, and those of
// [PacketVerdict], are those of package udppush.
type PacketRequest struct {
	// ClientIP is the address that the client names, "" when it names none, and
	// Port the one on which it listens.
	ClientIP string
	Port     int
	// Peer is the address that the call comes from.
	Peer netip.Addr
	// Eligible: the client's agent understands packets.
	Eligible bool
	Switches *registry.Switches
}

// PacketVerdict is the answer to a [PacketRequest].
type PacketVerdict struct {
	// Subscribe: the client becomes a subscriber.
	Subscribe bool
	// Target is where its packets go.
	Target netip.AddrPort
	// Refused says why nothing will be sent there, "" when packets will be. Such
	// a subscriber is listed and polls.
	Refused string
}

// Judge decides on one look-up. It must not block or keep the request.
type Judge func(PacketRequest) PacketVerdict

// Outcome is what became of the wish for packets.
type Outcome int

// What can become of it.
const (
	// Polls: the client wants no packets, or cannot read them, or the server has as
	// many subscriptions as it may.
	Polls Outcome = iota
	// Refused: it is listed as a subscriber, but its address is not its own.
	Refused
	// Pushed: changes reach it, so that it need not poll often.
	Pushed
)

// maxSubscriber bounds the texts of one subscription, in bytes. No service has a
// longer name, and no real client sends a longer agent.
const maxSubscriber = 8 << 10

// Subscribe makes a client that wants packets and may have them a subscriber,
// whether or not its service is there. form is the [registry.Subscriber.Form] of
// its packets. Call it before the look-up, so that no change falls between the two
// unseen.
func (q *Query) Subscribe(x *httpapi.Exchange, core *naming.Core, judge Judge, form string, cause registry.Cause) (Outcome, error) {
	if q.UDPPort <= 0 || q.size(x.UserAgent()) > maxSubscriber {
		return Polls, nil
	}
	s := core.Store().Switches()
	verdict := judge(PacketRequest{
		ClientIP: q.ClientIP, Port: q.UDPPort, Peer: x.Client(), Switches: s,
		Eligible: x.Agent().PushEligible(httpapi.ParsePushVersions(
			s.PushJavaVersion, s.PushPythonVersion, s.PushCVersion, s.PushGoVersion, s.PushCSharpVersion)),
	})
	if !verdict.Subscribe {
		return Polls, nil
	}
	err := core.Subscribe(x.Context(), cause, &registry.Subscriber{
		SubscriberKey: registry.SubscriberKey{Addr: verdict.Target, Agent: x.UserAgent(), Clusters: q.Clusters},
		Service:       q.Key, Protocol: registry.ProtocolUDP, App: q.App, Form: form, Refused: verdict.Refused,
	})
	switch {
	case beyondLimit(err):
		return Polls, nil // the look-up itself is good
	case err != nil:
		return Polls, err
	case verdict.Refused != "":
		return Refused, nil
	default:
		return Pushed, nil
	}
}

func beyondLimit(err error) bool {
	if err == nil { // nearly always, and errors.As would cost an allocation
		return false
	}
	var refusal *registry.Error
	return errors.As(err, &refusal) && refusal.Code == registry.LimitExceeded
}

// size is what a subscription would keep, in bytes.
func (q *Query) size(agent string) int {
	return len(q.Key.Namespace) + len(q.Key.Group) + len(q.Key.Name) + len(q.Clusters) + len(q.App) + len(agent)
}
