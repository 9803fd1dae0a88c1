package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	rollcall "github.com/rollcall-registry/rollcall/client"
)

// serviceChange is what watch prints as JSON of the list of services.
type serviceChange struct {
	Time     int64    `json:"time"` // milliseconds since the epoch
	Services int      `json:"services"`
	Added    []string `json:"added"`
	Removed  []string `json:"removed"`
}

// services shows which services of a group there are until ctx ends.
func (v *viewer) services(ctx context.Context, group string) error {
	bounded, cancel := v.client.asked(ctx)
	w, err := v.sdk.WatchServices(bounded, rollcall.Pattern{Group: group})
	cancel()
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		select {
		case u, ok := <-w.Updates():
			if !ok {
				return rollcall.ErrClosed
			}
			if v.begun && len(u.Added)+len(u.Removed) == 0 {
				continue
			}
			if err := v.list(&u, group); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// list shows one change of the list of services.
func (v *viewer) list(u *rollcall.ServicesUpdate, group string) error {
	at := time.Now().UnixMilli()
	if v.client.json {
		v.begun = true
		return v.line(serviceChange{at, len(u.Services), namesOf(u.Added), namesOf(u.Removed)})
	}
	return v.rows([]string{"TIME", "", "SERVICE"}, func(w io.Writer) {
		for _, name := range namesOf(u.Added) {
			row(w, stamp(at), added, name)
		}
		for _, name := range namesOf(u.Removed) {
			row(w, stamp(at), removed, name)
		}
		if len(u.Services) == 0 {
			fmt.Fprintf(w, "there are no services in group %s of namespace %s\n", group, v.client.space())
		}
	})
}

func namesOf(list []rollcall.Service) []string {
	names := []string{}
	for _, s := range list {
		names = append(names, fullName(s))
	}
	return names
}
