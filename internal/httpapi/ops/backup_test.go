package ops_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/opsv1"
)

// fill registers persistent instances with so many bytes of metadata each.
func (r *rig) fill(instances, bytes int) {
	r.t.Helper()
	for n := range instances {
		r.register("serviceName=kept", "ip=10.0.0.1", fmt.Sprintf("port=%d", n+1), "ephemeral=false",
			fmt.Sprintf("metadata=text=%05d%s", n, strings.Repeat("x", bytes)))
	}
}

// exported returns what the server would tell of its durable state, without the
// revisions, which grow with a restore.
func (r *rig) exported() string {
	r.t.Helper()
	var out strings.Builder
	for line := range strings.Lines(r.must("GET", "/rollcall/v1/export")) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			r.t.Fatalf("export: %v in %q", err, line)
		}
		if service, ok := v["service"].(map[string]any); ok {
			delete(service, "revision")
		}
		b, err := json.Marshal(v)
		if err != nil {
			r.t.Fatal(err)
		}
		out.Write(append(b, '\n'))
	}
	return out.String()
}

// A backup larger than other bodies may be goes into another server, and all that
// is durable with it.
func TestBackupIntoAnotherServer(t *testing.T) {
	t.Parallel()
	from, to := newRig(t), newRig(t)
	from.fill(135, 63_000)
	from.v1("POST", "/service", "serviceName=made", "protectThreshold=0.5")
	from.v1("PUT", "/operator/switches", "entry=pushEnabled", "value=false")
	to.register("serviceName=other", "ip=10.0.0.1", "port=1", "ephemeral=false")
	to.register("serviceName=beating", "ip=10.0.0.1", "port=1")

	backup := from.must("GET", "/rollcall/v1/backup")
	if len(backup) <= 8<<20 {
		t.Fatalf("the backup has %d bytes, too few for this test", len(backup))
	}
	status, text := to.do("POST", "/rollcall/v1/restore", strings.NewReader(backup))
	var info opsv1.BackupInfo
	if err := json.Unmarshal([]byte(text), &info); status != http.StatusOK || err != nil || info.Index == 0 || info.ID == "" || info.Time == 0 {
		t.Fatalf("restore: %d %s, %v", status, text, err)
	}
	if got, want := to.exported(), from.exported(); got != want {
		t.Errorf("after the restore the export differs: %d and %d bytes", len(got), len(want))
	}
	if n := ask[opsv1.Instances](to, "instances", "service=beating").Total; n != 1 {
		t.Errorf("%d ephemeral instances are left, want 1", n)
	}
	gone := ask[opsv1.Explanation](to, "explain", "service=other", "ip=10.0.0.1", "port=1")
	if gone.Change == nil || gone.Change.Kind != "removed" || gone.Change.Cause.Kind != "restore" {
		t.Errorf("what the restore removed is explained by %+v", gone.Change)
	}
	if n := ask[opsv1.Instances](to, "instances", "service=kept").Total; n != 135 {
		t.Errorf("%d instances came with the backup, want 135", n)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill(3, 100)
	before := r.exported()
	backup := []byte(r.must("GET", "/rollcall/v1/backup"))
	damaged := bytes.Clone(backup)
	damaged[len(damaged)/2] ^= 1
	for _, tt := range []struct {
		name string
		body []byte
		want string
	}{
		{"nothing", nil, "the body is empty; send what GET /rollcall/v1/backup gave"},
		{"a part", backup[:len(backup)-1], "ends before its end mark"},
		{"damaged", damaged, "damaged at byte "},
		{"more than a backup", append(bytes.Clone(backup), 'x'), "damaged at byte "},
		{"an export", []byte(before), "damaged at byte 0: it does not begin like a file of Rollcall"},
		{"something else", bytes.Repeat([]byte("PK"), 1000), "damaged at byte 0: it does not begin like a file of Rollcall"},
	} {
		if got := r.refusal("POST", "/rollcall/v1/restore", bytes.NewReader(tt.body)); !strings.HasPrefix(got, "400 nothing was restored: ") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	if got := r.exported(); got != before {
		t.Error("a refused restore changed something")
	}
	r.register("serviceName=after", "ip=10.0.0.1", "port=1", "ephemeral=false")
	unsized := io.MultiReader(bytes.NewReader(backup)) // is sent in chunks
	if status, text := r.do("POST", "/rollcall/v1/restore", unsized); status != http.StatusOK {
		t.Fatalf("a sound backup: %d %s", status, text)
	}
	if got := r.exported(); got != before {
		t.Error("a restore did not bring back what was before")
	}
}

// raw sends the beginning of a request and returns its connection.
func (r *rig) raw(text string) net.Conn {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.Addr())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = nc.Close() })
	if _, err := io.WriteString(nc, text); err != nil {
		r.t.Fatal(err)
	}
	return nc
}

func TestOneRestoreAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	backup := r.must("GET", "/rollcall/v1/backup")
	first := r.raw(fmt.Sprintf("POST /rollcall/v1/restore HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(backup)))
	begun := make([]byte, len("HTTP/1.1 100")) // comes when the restore asks for its body
	if _, err := io.ReadFull(first, begun); err != nil || string(begun) != "HTTP/1.1 100" {
		t.Fatalf("got %q, %v, want 100", begun, err)
	}
	want := `{"error":"nothing was restored: another restore is running"}`
	if status, body := r.do("POST", "/rollcall/v1/restore", strings.NewReader("x")); status != http.StatusConflict || body != want {
		t.Errorf("the second: %d %s, want 409 %s", status, body, want)
	}
	_ = first.Close() // without its body it is none
	eventually(t, "the next is taken", func() bool {
		status, _ := r.do("POST", "/rollcall/v1/restore", strings.NewReader(backup))
		return status == http.StatusOK
	})
}

func TestRestoreHasALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	nc := r.raw("POST /rollcall/v1/restore HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741825\r\n\r\n")
	line := make([]byte, len("HTTP/1.1 413"))
	if _, err := io.ReadFull(nc, line); err != nil || string(line) != "HTTP/1.1 413" {
		t.Errorf("got %q, %v, want 413", line, err)
	}
}
