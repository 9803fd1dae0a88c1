package arch

import (
	"slices"
	"strings"
	"testing"
)

// A row says which packages of this module the packages of a tree may import.
type row struct {
	tree string   // a package and those below it, unless a longer row fits them
	may  []string // trees; a package may always import what lies in its own row's tree
	why  string
}

// rows is the whole table: each package must have a row. Imports point inwards:
// cmd, cli, server, front-ends, naming, registry.
var rows = []row{
	{"cmd", []string{"internal/cli"}, "main is a page"},
	{"internal/cli", []string{"server", "client", "api", "internal/bench"}, "a command turns flags into a configuration or a call; it knows no rule of the registry"},
	{"server", []string{"internal", "api"}, "the composition root knows all parts"},
	{"servertest", []string{"server", "client", "api", "internal"}, "it drives whole servers"},
	{"client", []string{"api"}, "the SDK must build without the server"},
	{"api", nil, "wire types know no rule of the registry"},
	{"bench", []string{"server", "servertest", "client", "api", "internal"}, "programs that measure may see everything"},
	{"test", []string{"server", "servertest", "client", "api", "internal"}, "tests may see everything"},

	{"internal/registry", nil, "the core knows nothing of ours"},
	{"internal/naming", []string{"internal/registry"}, "it declares the replicator that it needs"},
	{"internal/health", []string{"internal/registry"}, "parts around the core do not know each other"},
	{"internal/push", []string{"internal/registry"}, "parts around the core do not know each other"},
	{"internal/member", []string{"internal/registry"}, "parts around the core do not know each other"},
	{"internal/auth", []string{"internal/registry"}, "parts around the core do not know each other"},
	{"internal/ledger", []string{"internal/registry", "internal/store"}, "the history is made of the core's events"},
	{"internal/store", nil, "files on disk, whatever they hold"},
	{"internal/recovery", []string{"internal/registry", "internal/naming", "internal/ledger", "internal/store"}, "it fills the core from the snapshot and the history, before the front-ends open"},
	{"internal/distro", []string{"internal/registry", "internal/member", "internal/store"}, "replication does not know clients, subscribers or HTTP"},
	{"internal/consensus", []string{"internal/registry", "internal/member", "internal/store"}, "replication does not know clients, subscribers or HTTP"},
	{"internal/peer", []string{"api"}, "the transport does not know what its frames mean"},
	{"internal/metrics", nil, "numbers, whatever they count"},
	{"internal/bench", []string{"api"}, "it measures any server, and knows ours no better than others"},
	{"internal/arch", nil, "only tests"},

	{"internal/hosts", []string{"internal/naming", "internal/registry", "api"}, "it shows instances to the front-ends that clients of 2.x call"},
	{"internal/httpapi", []string{"internal/admission", "internal/socket", "internal/naming", "internal/registry", "internal/hosts", "internal/auth", "api"}, "a front-end decodes, calls naming and encodes"},
	{"internal/httpapi/ops", []string{"internal/httpapi", "internal/naming", "internal/registry", "internal/auth", "internal/ledger", "api"}, "the operator's API reads the history besides"},
	{"internal/grpcapi", []string{"internal/admission", "internal/socket", "internal/naming", "internal/registry", "internal/hosts", "internal/auth", "api"}, "a front-end decodes, calls naming and encodes"},
	{"internal/certs", nil, "certificates, whatever they are for"},
	{"internal/socket", nil, "sockets, whatever is said over them"},
	{"internal/admission", nil, "it counts connections, whatever is said over them"},
	{"internal/portmux", nil, "it tells protocols apart by their first bytes and knows neither"},
	{"internal/udppush", []string{"internal/naming", "internal/registry", "internal/auth", "api"}, "a front-end decodes, calls naming and encodes"},
	{"internal/console", []string{"internal/naming", "internal/registry", "internal/auth", "api"}, "a front-end decodes, calls naming and encodes"},
}

// siblings are trees whose packages must not import each other although they
// share a row.
var siblings = []string{
	"internal/httpapi/legacy", "internal/httpapi/v1", "internal/httpapi/v2", "internal/httpapi/v3",
}

// libraries says who alone may import a library directly.
var libraries = []struct {
	library string // a tree of import paths
	only    []string
	why     string
}{
	{"github.com/hashicorp/raft", []string{"internal/consensus"}, "one package knows the Raft library"},
	{"github.com/hashicorp/raft-boltdb", []string{"internal/consensus"}, "one package knows the Raft library"},
	{"github.com/spf13", []string{"internal/cli"}, "only the command line reads flags"},
	{"github.com/knadh", []string{"internal/cli/config"}, "settings are read in one place"},
	{"github.com/KimMachineGun/automemlimit", []string{"internal/cli"}, "the limit belongs to the process, not to a server in it"},
	{"github.com/prometheus", []string{"internal/metrics", "internal/bench/process", "client/rollcallprom"}, "parts count through what metrics offers; bench reads /proc; a hook of the SDK is a package of its own"},
	{"go.opentelemetry.io", []string{"client/rollcallotel"}, "a hook of the SDK is a package of its own"},
	{"github.com/valyala/fasthttp", []string{"internal/httpapi", "internal/bench/http1"}, "the HTTP stack can be changed behind one package"},
	{"google.golang.org/grpc", []string{"internal/grpcapi/grpcgo", "internal/grpcapi/grpctest", "client/internal/grpcmode", "client/rollcallgrpc"}, "servers and clients can change the transport behind the seams of internal/grpcapi/transport and client/internal/wire"},
	{"golang.org/x/net/http2", []string{"internal/grpcapi/h2", "internal/grpcapi/grpcgo", "internal/grpcapi/transport/transporttest", "internal/portmux", "internal/bench"}, "frames are the work of transports, and of what tries them"},
}

// unreachable says what a tree must not need, even through others.
var unreachable = []struct {
	tree, banned string // banned: a tree of import paths
	except       string // of it
	why          string
}{
	{"internal/registry", "net", "net/netip", "the core does no I/O"},
	{"internal/registry", "log", "", "the core returns events and errors; callers log"},
	{"internal/registry", "context", "", "nothing in the core blocks"},
	{"client", module + "/internal", "", "the SDK must build without the server"},
	{"client", module + "/server", "", "the SDK must build without the server"},
	{"server", module + "/internal/cli", "", "a library does not read flags or the environment"},
	{"server", "google.golang.org/grpc", "", "the server speaks gRPC by itself; grpc-go is for clients and comparison"},
}

// directly says what a tree must not import itself.
var directly = []struct {
	tree, banned, why string
}{
	{"internal/registry", "os", "the core does no I/O"},
	{"internal/registry", "math/rand", "the same commands must give the same state everywhere"},
	{"internal/registry", "math/rand/v2", "the same commands must give the same state everywhere"},
	{"internal", "testing", "what only tests need stays in tests, or in a package whose name ends so"},
	{"server", "testing", "what only tests need stays in tests, or in a package whose name ends so"},
	{"server", "flag", "a library does not read flags"},
	{"server", "os/signal", "a library does not hear the signals of its process"},
	{"internal", "os/signal", "only cmd hears signals"},
	{"internal/naming", "net", "naming does not know the network"},
	{"internal/naming", "os", "naming does not know the disk"},
}

func TestRows(t *testing.T) {
	for _, p := range list(t) {
		if !p.ours() {
			continue
		}
		r := rowOf(p.name())
		if r == nil {
			t.Errorf("%s has no row; add one that says what it may import", p.name())
			continue
		}
		for _, path := range p.Imports {
			if inner, ok := strings.CutPrefix(path, module+"/"); ok && !r.allows(inner) {
				t.Errorf("%s imports %s: %s", p.name(), inner, r.why)
			}
		}
	}
}

// rowOf returns the row with the longest tree that holds the package.
func rowOf(name string) *row {
	var best *row
	for i := range rows {
		if r := &rows[i]; inTree(name, r.tree) && (best == nil || len(r.tree) > len(best.tree)) {
			best = r
		}
	}
	return best
}

func (r *row) allows(imported string) bool {
	return inTree(imported, r.tree) || slices.ContainsFunc(r.may, func(tree string) bool { return inTree(imported, tree) })
}

func TestSiblings(t *testing.T) {
	for _, p := range list(t) {
		for _, a := range siblings {
			for _, b := range siblings {
				if a != b && p.ours() && inTree(p.name(), a) && slices.Contains(p.Imports, module+"/"+b) {
					t.Errorf("%s imports %s: the adapters of the APIs do not know each other", p.name(), b)
				}
			}
		}
	}
}

func TestLibraries(t *testing.T) {
	for _, p := range list(t) {
		if !p.ours() || inTree(p.name(), "test") || inTree(p.name(), "bench") {
			continue
		}
		for _, path := range p.Imports {
			for _, rule := range libraries {
				if inTree(path, rule.library) && !slices.ContainsFunc(rule.only, func(tree string) bool { return inTree(p.name(), tree) }) {
					t.Errorf("%s imports %s, which only %s may: %s", p.name(), path, strings.Join(rule.only, ", "), rule.why)
				}
			}
			if library(path) && inTree(p.name(), "internal/registry") {
				t.Errorf("%s imports %s: the core needs the standard library only", p.name(), path)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	packages := list(t)
	for _, p := range packages {
		if !p.ours() {
			continue
		}
		for _, rule := range unreachable {
			if !inTree(p.name(), rule.tree) {
				continue
			}
			for path := range reach(packages, p) {
				if inTree(path, rule.banned) && (rule.except == "" || !inTree(path, rule.except)) {
					t.Errorf("%s needs %s: %s", p.name(), path, rule.why)
				}
			}
		}
		for _, rule := range directly {
			forTests := rule.banned == "testing" && strings.HasSuffix(p.name(), "test")
			if inTree(p.name(), rule.tree) && slices.Contains(p.Imports, rule.banned) && !forTests {
				t.Errorf("%s imports %s: %s", p.name(), rule.banned, rule.why)
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range list(t) {
		if p.ours() && len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment; say what it is, what it leaves to others, and whether it may be used concurrently", p.name())
		}
	}
}
