package outcome

import (
	"context"
	"errors"
	"fmt"
	"testing"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "ok"},
		{errors.New("x"), "error"},
		{fmt.Errorf("x: %w", rollcall.ErrForbidden), "forbidden"},
		{errors.Join(rollcall.ErrNotConnected, context.DeadlineExceeded), "timeout"},
		{errors.Join(context.DeadlineExceeded, rollcall.ErrUnauthorized), "unauthorized"},
	} {
		if got := Word(tt.err); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}
