package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// TestRecordedLists reads the lists that servers of Nacos answered, as the SDK does.
func TestRecordedLists(t *testing.T) {
	files, err := filepath.Glob("../golden/testdata/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	read := make(map[string]int)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var recorded struct {
			Steps []struct {
				Path   string
				Expect struct {
					Status int
					JSON   json.RawMessage
				}
			}
		}
		if json.Unmarshal(text, &recorded) != nil {
			continue // of another form
		}
		for _, step := range recorded.Steps {
			path := strings.TrimPrefix(step.Path, "/nacos")
			if step.Expect.Status != 200 || path != "/v1/ns/instance/list" && path != "/v1/ns/api/srvIPXT" {
				continue
			}
			var want struct{ Hosts []struct{ Port int } }
			if json.Unmarshal(step.Expect.JSON, &want) != nil || want.Hosts == nil {
				continue
			}
			want.Hosts = slices.DeleteFunc(want.Hosts, func(h struct{ Port int }) bool { return h.Port < 1 || h.Port > 65535 })
			var info grpcv2.ServiceInfo
			hosts := 0
			err := grpcv2.ReadServiceInfo(step.Expect.JSON, &info, func(*grpcv2.Host) { hosts++ })
			if err != nil || hosts != len(want.Hosts) || !info.HasHosts {
				t.Errorf("%s: %v, %d hosts, want %d", file, err, hosts, len(want.Hosts))
			}
			read[path]++
		}
	}
	if read["/v1/ns/instance/list"] < 10 || read["/v1/ns/api/srvIPXT"] < 5 {
		t.Errorf("only %v found", read)
	}
}
