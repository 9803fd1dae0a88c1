package rollcall_test

import (
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func TestLocalIP(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []rollcall.Option
		want    string
	}{
		{"by the route", []rollcall.Option{rollcall.WithServers("127.0.0.1:1")}, "127.0.0.1"},
		{"as set", []rollcall.Option{rollcall.WithServers("127.0.0.1:1"), rollcall.WithLocalIP("192.0.2.7")}, "192.0.2.7"},
		{"by the second server", []rollcall.Option{rollcall.WithServers("nowhere.invalid", "127.0.0.1:1")}, "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := rollcall.New(tt.options...)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got, err := c.LocalIP(t.Context()); err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
