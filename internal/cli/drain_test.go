package cli

import (
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/servertest"
)

// TestDrainWhatIsKeptAlive: an instance that stays, because a connection keeps it, stays
// without weight.
func TestDrainWhatIsKeptAlive(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	connect(t, server, "Nacos-Java-Client:v2.4.3")
	got := run(t, Process{}, "drain", "orders", "10.0.0.5:8080", "--wait", "0s", "--deregister", "-s", server.URL())
	if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, "a client keeps it alive") || !strings.Contains(got.stderr, "it stays drained") {
		t.Errorf("got %+v", got)
	}
	all := instancesOf(t, server, "orders")
	if len(all.Instances) != 1 || all.Instances[0].Weight != 0 {
		t.Errorf("the registry has %+v", all)
	}
}
