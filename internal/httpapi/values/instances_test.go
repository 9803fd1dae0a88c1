package values

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseInstances(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"one", `[{"ip":"1.1.1.1","port":80}]`, "[{{1.1.1.1 80 DEFAULT} true}]"},
		{"loose types", `[{"ip":"FE80:0::1","port":"80","clusterName":" c ","ephemeral":"false"},{"ip":7}]`, "[{{fe80::1 80 c} false} {{7 0 DEFAULT} true}]"},
		{"other members", `[{"ip":"1.1.1.1","port":80,"weight":[]}]`, "[{{1.1.1.1 80 DEFAULT} true}]"},
		{"none", `[]`, "[]"},
		{"an object", `{"ip":"1.1.1.1"}`, "not a JSON array"},
		{"no object", `["1.1.1.1"]`, "wrong type"},
		{"an address that is none", `[{"ip":{}}]`, "wrong type"},
		{"a port that is none", `[{"ip":"1.1.1.1","port":"x"}]`, "wrong type"},
		{"two documents", `[][]`, "not JSON"},
		{"nothing", ``, "not JSON"},
		{"too much", `[` + strings.Repeat(" ", maxListed) + `]`, "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := ParseInstances(tt.text)
			got := fmt.Sprint(list)
			if err != nil {
				got = err.Error()
			}
			if err == nil && got != tt.want || !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
