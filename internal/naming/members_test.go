package naming

import (
	"testing"

	"github.com/rollcall-registry/rollcall/internal/registry"
)

type fixedClock registry.Instant

func (c fixedClock) Now() registry.Instant { return registry.Instant(c) }

func TestAlone(t *testing.T) {
	a := NewAlone(fixedClock{Wall: 42})
	for _, tt := range []struct {
		host string
		port int
		want string
	}{
		{"10.0.0.7", 8848, "10.0.0.7:8848"},
		{"node-7.example", 80, "node-7.example:80"},
		{"::1", 8848, "[::1]:8848"},
	} {
		a.SetAddress(tt.host, tt.port)
		want := Member{Host: tt.host, Port: tt.port, State: MemberUp, Seen: 42}
		if got := a.Self(); got != want || got.Address() != tt.want {
			t.Errorf("got %+v at %s, want %+v at %s", got, got.Address(), want, tt.want)
		}
		if list := a.Members(); len(list) != 1 || list[0] != want {
			t.Errorf("got members %+v, want only %+v", list, want)
		}
	}
}
