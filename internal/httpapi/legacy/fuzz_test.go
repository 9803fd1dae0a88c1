package legacy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcall-registry/rollcall/internal/httpapi/httpapitest"
	"github.com/rollcall-registry/rollcall/internal/httpapi/lookup"
)

// FuzzRequest sends whole requests, regDom and its kin among them: never a panic,
// every answer is complete and its JSON valid, and so is what this API shows of
// whatever the request left behind.
func FuzzRequest(f *testing.F) {
	calls := []string{
		"regDom", "updateDom", "addCluster4Dom", "regService", "deRegService", "clientBeat", "srvIPXT",
		"addIP4Dom", "remvIP4Dom", "ip4Dom", "ip4Dom2", "dom", "rt4Dom", "searchDom", "getDomsByIP", "remvDom",
		"updateSwitch", "updateClusterConf", "containerNotify", "allDomNames", "distroStatus", "switches",
	}
	for i := range calls {
		f.Add(uint8(i), "serviceName=a&dom=a&ip=1.1.1.1&port=1&weight=0.5&metadata=k=v", "")
		f.Add(uint8(i), "serviceName=b&dom=b", "owners=a,b&token=t&protectThreshold=0.6&cktype=HTTP&path=/x&defCkport=1&enableClientBeat=false")
		f.Add(uint8(i), "serviceName=%ff%00&ip=%e4&port=%2B1&encoding=GBK&weight=NaN&dom=g@@a", "clusters=a,b&udpPort=1&clientIP=127.0.0.1")
		f.Add(uint8(i), "serviceName=a&dom=a", "json=true&ipList="+escape(`[{"ip":"1.1.1.1","port":"2","clusterName":"c"}]`))
		f.Add(uint8(i), "serviceName=c&dom=c", "clusters="+escape(`[{"name":"c","healthChecker":{"type":"MYSQL"}}]`))
		f.Add(uint8(i), "entry=batch", "json="+escape(`{"checkTimes":1e300,"masters":null}`))
		f.Add(uint8(i), "dom=a&beat="+escape(`{"ip":"1.1.1.1","port":80,"metadata":{"a":"b"}}`), "expr=a.*(")
	}
	f.Fuzz(func(t *testing.T, call uint8, query, form string) {
		s := newTestAPI(t, httpapitest.Stopped{})
		s.replay(t, "GET", "regService?serviceName=a&ip=1.1.1.1&port=1", "")
		name := calls[int(call)%len(calls)]
		got := s.replay(t, "POST", name+"?"+printable(query), form)
		switch got.status {
		case 200, 400, 404, 500:
		default:
			t.Errorf("%s: status %d", name, got.status)
		}
		if strings.Contains(got.body, "internal error") {
			t.Errorf("%s?%q %q: %s", name, query, form, got.body)
		}
		if got.status == 200 && got.body != "ok" && !json.Valid([]byte(got.body)) {
			t.Errorf("%s?%q %q: answered %q", name, query, form, got.body)
		}
		s.checkShown(t, fmt.Sprintf("%s?%q %q", name, query, form))
	})
}

// checkShown reads back every service.
func (s *testServer) checkShown(t *testing.T, after string) {
	t.Helper()
	for _, ns := range s.store.ServiceNamespaces() {
		keys, _ := s.store.Services(ns, "", 0, 10)
		for _, key := range keys {
			view := s.store.View(key)
			for _, text := range [][]byte{
				s.api.appendDom(nil, view), s.api.appendLookup(nil, view, &lookup.Query{Key: key}, nil, 1),
			} {
				if !json.Valid(text) || !utf8.Valid(text) {
					t.Errorf("%s: shown as %q", after, text)
				}
			}
		}
	}
}

// printable escapes the bytes that end a request line or are refused in it, as
// this package never sees them raw.
func printable(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
