package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/opsv1"
	"github.com/rollcall-registry/rollcall/servertest"
)

// TestOneClient shows a connected client with what it holds.
func TestOneClient(t *testing.T) {
	t.Parallel()
	server := servertest.New(t)
	connect(t, server, "Nacos-Java-Client:v2.5.1")
	var list opsv1.Clients
	got := run(t, Process{}, "clients", "--json", "-s", server.URL())
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Clients) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	id := list.Clients[0].ID
	got = run(t, Process{}, "clients", id, "-s", server.URL())
	text := strings.ReplaceAll(got.stdout, id, "ID")
	text = regexp.MustCompile(`\d{4}-\S+Z`).ReplaceAllString(text, "TIME")
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "ADDRESS")
	text = regexp.MustCompile(`(last seen +)\S+`).ReplaceAllString(text, "${1}AGE")
	text = regexp.MustCompile(`  +`).ReplaceAllString(text, "  ")
	const want = `client  ID
protocol  grpc
sdk  java 2.5.1
agent  Nacos-Java-Client:v2.5.1
address  ADDRESS
own address  127.0.0.1
app  shop
module  naming
namespace  public
since  TIME
last seen  AGE
push lag  -

REGISTERED  CLUSTER  NAMESPACE  SERVICE
10.0.0.5:8080  DEFAULT  public  orders

SUBSCRIBED  NAMESPACE  CLUSTERS  ACKNOWLEDGED  PUSH LAG  REMARKS
orders  public  TIME  -
`
	if got.code != exitOK || text != want {
		t.Errorf("code %d, got\n%s\nwant\n%s", got.code, text, want)
	}
}

// TestClientsArePaged: a long list is asked for in pages, up to the limit.
func TestClientsArePaged(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("offset")+"+"+q.Get("limit")+" "+q.Get("sdk"))
		n := 0
		if _, err := fmt.Sscan(q.Get("limit"), &n); err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(opsv1.Clients{Total: 5000, Clients: make([]opsv1.Client, n)})
	}))
	t.Cleanup(server.Close)
	got := run(t, Process{}, "clients", "--sdk", "go", "--limit", "1500", "-s", server.URL)
	if got.code != exitOK || strings.Count(got.stdout, "\n") != 1502 || !strings.HasSuffix(got.stdout, "and 3500 more\n") {
		t.Errorf("code %d, %d lines", got.code, strings.Count(got.stdout, "\n"))
	}
	if text := strings.Join(asked, ", "); text != "0+1000 go, 1000+500 go" {
		t.Errorf("asked for %s", text)
	}
}

func TestClientRemarks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		client opsv1.Client
		want   string
	}{
		{opsv1.Client{Module: "naming"}, ""},
		{opsv1.Client{Module: "config"}, "module config"},
		{opsv1.Client{Recalled: true}, "not back since the restart"},
		{opsv1.Client{Pushes: opsv1.ClientPushes{Refused: "not its own"}}, "not pushed to: not its own"},
		{opsv1.Client{Pushes: opsv1.ClientPushes{Unacknowledged: 2}}, "2 unacknowledged"},
		{opsv1.Client{Pushes: opsv1.ClientPushes{Unacknowledged: 1, WaitingFor: 1500, Failed: 3}}, "1 unacknowledged for 1.5s, 3 not told the newest"},
	} {
		if got := clientRemarks(&tt.client); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.client, got, tt.want)
		}
	}
	for _, tt := range []struct {
		sub  opsv1.ClientSubscription
		want string
	}{
		{opsv1.ClientSubscription{}, ""},
		{opsv1.ClientSubscription{Refused: "not its own", Waiting: true}, "not pushed to: not its own"},
		{opsv1.ClientSubscription{Waiting: true}, "unacknowledged"},
		{opsv1.ClientSubscription{Waiting: true, WaitingFor: 20}, "unacknowledged for 20ms"},
		{opsv1.ClientSubscription{Failed: 7, Acknowledged: 6, Problem: "too large"}, "too large"},
		{opsv1.ClientSubscription{Failed: 7, Acknowledged: 8, Problem: "too large"}, ""},
	} {
		if got := subscriptionRemarks(&tt.sub); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.sub, got, tt.want)
		}
	}
}
