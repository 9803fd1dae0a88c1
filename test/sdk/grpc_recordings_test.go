package sdk

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// recorded is a message of a recording of gRPC.
type recorded struct {
	Dir, Stream, Type, Event string
	Body                     json.RawMessage
}

// TestRecordedMessages reads what servers of Nacos 2.5.1 and 3.0.3 answered and pushed,
// as the SDK does.
func TestRecordedMessages(t *testing.T) {
	for version, least := range map[string]map[string]int{
		"2.5.1": {"answer": 100, "list": 20, "push": 10, "ack": 20, "refusal": 10},
		"3.0.3": {"answer": 100, "list": 20, "push": 10, "ack": 20, "refusal": 10, "fuzzy": 3},
	} {
		files, err := filepath.Glob("../golden/grpc/testdata/grpc-" + version + "/*.json")
		if err != nil {
			t.Fatal(err)
		}
		read := make(map[string]int)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var recording struct{ Messages []recorded }
			if err := json.Unmarshal(text, &recording); err != nil {
				t.Fatal(err)
			}
			for _, m := range recording.Messages {
				if m.Dir == "server" && m.Event == "" && m.Body != nil {
					m.check(t, file, read)
				}
			}
		}
		for what, n := range least {
			if read[what] < n {
				t.Errorf("%s: only %v found", version, read)
			}
		}
	}
}

// check reads one message and counts what it was.
func (m *recorded) check(t *testing.T, file string, read map[string]int) {
	t.Helper()
	switch {
	case m.Stream == "unary":
		m.checkAnswer(t, file, read)
	case m.Type == grpcv2.NotifySubscriber:
		n, err := grpcv2.ReadNotify(m.Body)
		if err != nil || n.RequestID == "" || n.Name == "" || n.Group == "" || n.Namespace != "" {
			t.Errorf("%s: %s: %+v, %v", file, m.Body, n, err)
		}
		read["push"]++
		m.checkList(t, file, n.Info)
	default:
		q, err := grpcv2.ReadServerRequest(m.Body)
		if err != nil || (q.RequestID == "") != (m.Type == grpcv2.SetupAck) {
			t.Errorf("%s: %s: %+v, %v", file, m.Body, q, err)
		}
		switch m.Type {
		case grpcv2.SetupAck:
			read["ack"]++
			if len(q.Abilities) == 0 {
				t.Errorf("%s: no abilities in %s", file, m.Body)
			}
		case grpcv2.FuzzyWatchSync, grpcv2.FuzzyWatchChange:
			read["fuzzy"]++
			if len(q.Fuzzy.Changes) == 0 && q.Fuzzy.Kind != grpcv2.SyncFinish || (q.Fuzzy.Pattern == "") != (m.Type == grpcv2.FuzzyWatchChange) {
				t.Errorf("%s: %s: %+v", file, m.Body, q)
			}
		}
	}
}

func (m *recorded) checkAnswer(t *testing.T, file string, read map[string]int) {
	t.Helper()
	a, err := grpcv2.ReadAnswer(m.Body)
	var want struct {
		ResultCode, ErrorCode int32
		Message, ConnectionID string
		Success               bool
		Count                 int32
		ServiceNames          []string
		ServiceInfo           json.RawMessage
	}
	if jsonErr := json.Unmarshal(m.Body, &want); err != nil || jsonErr != nil {
		t.Errorf("%s: %s: %v, %v", file, m.Body, err, jsonErr)
		return
	}
	if a.OK() != want.Success || a.ErrorCode != want.ErrorCode || a.Message != want.Message || a.ConnectionID != want.ConnectionID ||
		a.Count != want.Count || len(a.Names) != len(want.ServiceNames) {
		t.Errorf("%s: %s is read as %+v", file, m.Body, a)
	}
	read["answer"]++
	if !a.OK() {
		read["refusal"]++
	}
	if len(want.ServiceInfo) > 0 && !bytes.Equal(want.ServiceInfo, []byte("null")) {
		read["list"]++
		m.checkList(t, file, a.Info)
	}
}

// checkList reads a list, whose ports are placeholders in some recordings.
func (m *recorded) checkList(t *testing.T, file string, raw []byte) {
	t.Helper()
	var want struct {
		Hosts       []struct{ Port json.Number }
		LastRefTime any
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Errorf("%s: %s: %v", file, raw, err)
		return
	}
	if _, number := want.LastRefTime.(float64); !number {
		raw = bytes.Replace(raw, []byte(`"lastRefTime": "`), []byte(`"lastRefTime": 1, "was": "`), 1)
	}
	real := 0
	for _, h := range want.Hosts {
		if port, err := h.Port.Int64(); err == nil && port > 0 && port < 1<<16 {
			real++
		}
	}
	var info grpcv2.ServiceInfo
	hosts := 0
	if err := grpcv2.ReadServiceInfo(raw, &info, func(*grpcv2.Host) { hosts++ }); err != nil || hosts != real || !info.HasHosts {
		t.Errorf("%s: %s: %v, %d hosts, want %d", file, raw, err, hosts, real)
	}
}
