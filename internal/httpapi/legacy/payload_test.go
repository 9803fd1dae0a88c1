package legacy

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

// accidents are what a recording has of its own: times, sums, and doubles that the
// recorder wrote without a fraction.
var accidents = regexp.MustCompile(`"checksum":"[^"]*"|"lastRefTime":\d+|\.0\b`)

// TestPacketIsAsRecorded: 0.9 pushes what it answers, with no name but dom.
func TestPacketIsAsRecorded(t *testing.T) {
	text, err := os.ReadFile("../../../test/golden/testdata/udp-0.9.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		ByAgent []struct {
			Packets []struct{ Packet struct{ Data string } }
		} `json:"packets_by_agent"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(recorded.ByAgent[0].Packets[0].Packet.Data, "{svc}", "svc")

	s := newTestServer(t)
	s.ok(t, "regService", "serviceName=svc&ip=1.1.1.1&port=1")
	s.ok(t, "regService", "serviceName=svc&ip=1.1.1.1&port=2")
	got := string(s.api.Payload(s.store.View(key("svc")), key("svc"), &registry.Subscriber{}))
	if accidents.ReplaceAllString(got, "") != accidents.ReplaceAllString(want, "") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPacketOfAServiceThatIsGone(t *testing.T) {
	s := newTestServer(t)
	sub := &registry.Subscriber{SubscriberKey: registry.SubscriberKey{Clusters: "a,b"}}
	want := `{"dom":"svc","cacheMillis":10000,"clusters":"a,b","hosts":[]}`
	if got := string(s.api.Payload(nil, key("svc"), sub)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
