// Package outcome puts the results of operations into words for metrics, the same ones
// whoever counts. Its functions are safe for concurrent use.
package outcome

import (
	"context"
	"errors"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// words are what errors are called, the more telling first.
var words = []struct {
	err  error
	word string
}{
	{rollcall.ErrReplaced, "replaced"},
	{rollcall.ErrClosed, "closed"},
	{rollcall.ErrUnauthorized, "unauthorized"},
	{rollcall.ErrForbidden, "forbidden"},
	{rollcall.ErrInvalidArgument, "invalid"},
	{rollcall.ErrNotFound, "not_found"},
	{rollcall.ErrConflict, "conflict"},
	{rollcall.ErrOverloaded, "overloaded"},
	{rollcall.ErrUnsupported, "unsupported"},
	{rollcall.ErrServerNotReady, "not_ready"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "cancelled"},
	{rollcall.ErrNotConnected, "not_connected"},
}

// Word returns ok for nil, one of some words for errors of the client, and else
// error.
func Word(err error) string {
	if err == nil {
		return "ok"
	}
	for _, w := range words {
		if errors.Is(err, w.err) {
			return w.word
		}
	}
	return "error"
}
