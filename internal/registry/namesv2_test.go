package registry

import (
	"errors"
	"strings"
	"testing"
)

func TestChecksOfV2(t *testing.T) {
	const long = "the param length should not exceed "
	const illegal = "illegal characters should not appear in the param."
	for _, tt := range []struct {
		name  string
		check func(string) error
		value string
		want  string // the end of the sentence; empty: passes
	}{
		{"namespace", CheckNamespaceV2, "team-a_1", ""},
		{"no namespace", CheckNamespaceV2, "", ""},
		{"longest namespace", CheckNamespaceV2, strings.Repeat("n", 64), ""},
		{"long namespace", CheckNamespaceV2, strings.Repeat("n", 65), "Param 'namespaceId/tenant' is illegal, " + long + "64."},
		{"namespace with a blank", CheckNamespaceV2, "a b", "Param 'namespaceId/tenant' is illegal, " + illegal},
		{"namespace with a line break", CheckNamespaceV2, "a\nb", illegal},
		{"display name", CheckNamespaceNameV2, "团队 A (test)", ""},
		{"display name with a sign", CheckNamespaceNameV2, "a@b", "Param 'namespaceShowName' is illegal, " + illegal},
		{"long display name", CheckNamespaceNameV2, strings.Repeat("ü", 257), long + "256."},
		{"display name with a control character", CheckNamespaceNameV2, "a\x00", illegal},
		{"service", CheckServiceNameV2, "pay/a:b?c=d", ""},
		{"service with one @", CheckServiceNameV2, "a@b", ""},
		{"service from @", CheckServiceNameV2, "@a", "Param 'serviceName' is illegal, " + illegal},
		{"service with a separator", CheckServiceNameV2, "a@@b", illegal},
		{"service in Chinese", CheckServiceNameV2, "服务a", illegal},
		{"service with a tab", CheckServiceNameV2, "a\tb", illegal},
		{"service with a wide blank", CheckServiceNameV2, "a\u3000b", illegal},
		{"service that is no UTF-8", CheckServiceNameV2, "a\xff", illegal},
		{"longest service", CheckServiceNameV2, strings.Repeat("é", 512), ""},
		{"long service", CheckServiceNameV2, strings.Repeat("é", 513), long + "512."},
		{"group", CheckGroupV2, "A-b_c:d.0", ""},
		{"group with @", CheckGroupV2, "a@b", "Param 'group' is illegal, " + illegal},
		{"long group", CheckGroupV2, strings.Repeat("g", 129), long + "128."},
		{"cluster", CheckClusterV2, "a_b-1", ""},
		{"cluster with a slash", CheckClusterV2, "a/b", "Param 'cluster' is illegal, " + illegal},
		{"long cluster", CheckClusterV2, strings.Repeat("c", 65), long + "64."},
		{"host name", CheckIPV2, "orders.example", ""},
		{"IPv6", CheckIPV2, "fe80::1", ""},
		{"ip with a blank", CheckIPV2, "1.2 .3.4", "Param 'ip' is illegal, " + illegal},
		{"long ip", CheckIPV2, strings.Repeat("1", 129), long + "128."},
		{"port", CheckPortV2, "65535", ""},
		{"no port", CheckPortV2, "", ""},
		{"high port", CheckPortV2, "65536", "Param 'port' is illegal, the value should be between 0 and 65535."},
		{"negative port", CheckPortV2, "-1", "between 0 and 65535."},
		{"port in words", CheckPortV2, "x", "between 0 and 65535."},
		{"huge port", CheckPortV2, "99999999999999999999", "between 0 and 65535."},
	} {
		t.Run(tt.name, func(t *testing.T) { checkRefusal(t, tt.check(tt.value), RefusedName, tt.want) })
	}
}

func checkRefusal(t *testing.T, err error, code Code, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("got %v, want none", err)
		}
		return
	}
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Code != code || !strings.HasSuffix(refusal.Msg, want) {
		t.Errorf("got %v, want code %d with …%s", err, code, want)
	}
}

func TestCheckServiceV2(t *testing.T) {
	for _, tt := range []struct{ namespace, group, name, want string }{
		{"public", "g", "s", ""},
		{"", "", "s", ""},
		{"", "", "", "'serviceName' is illegal, illegal characters should not appear in the param."},
		{"a b", "g", "s", "'namespaceId/tenant' is illegal, illegal characters should not appear in the param."},
		{"", "g h", "s", "'group' is illegal, illegal characters should not appear in the param."},
	} {
		err := CheckServiceV2(ServiceKey{Namespace: tt.namespace, Group: tt.group, Name: tt.name})
		checkRefusal(t, err, RefusedName, tt.want)
	}
}

func TestCheckBeatTimes(t *testing.T) {
	for _, tt := range []struct {
		interval, timeout, remove string
		ok                        bool
	}{
		{"", "", "", true},
		{"1000", "3000", "6000", true},
		{"5000", "5000", "5000", true},
		{"", "4999", "", false},
		{"", "", "4999", false},
		{"9000", "", "3000", false},
		{"20000", "", "", false}, // the default timeout is 15 s
		{"soon", "1s", "", true}, // what is no number means the default
	} {
		var i Instance
		times(tt.interval, tt.timeout, tt.remove)(&i)
		want := ""
		if !tt.ok {
			want = "must less than 'heart beat timeout' and 'ip delete timeout'."
		}
		checkRefusal(t, CheckBeatTimes(i.Metadata), InvalidBeatTimes, want)
	}
}
