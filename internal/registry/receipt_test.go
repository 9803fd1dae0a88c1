package registry

import (
	"testing"
	"time"
)

func TestReceipt(t *testing.T) {
	s := &Subscriber{}
	if got := s.Receipt(); got != (Receipt{}) {
		t.Errorf("at first: %+v", got)
	}
	for _, tt := range []struct {
		name string
		do   func() bool
		news bool
		want Receipt
	}{
		{"failed", func() bool { return s.PushFailed(5, "lost") }, true, Receipt{Failed: 5, Problem: "lost"}},
		{"failed again", func() bool { return s.PushFailed(5, "lost") }, false, Receipt{Failed: 5, Problem: "lost"}},
		{
			"then acknowledged", func() bool { return s.Acknowledge(5, 100, time.Second) }, true,
			Receipt{Revision: 5, At: 100, Took: time.Second, Failed: 5, Problem: "lost"},
		},
		{
			"acknowledged again", func() bool { return s.Acknowledge(5, 200, 0) }, false,
			Receipt{Revision: 5, At: 100, Took: time.Second, Failed: 5, Problem: "lost"},
		},
		{
			"an older one fails late", func() bool { return s.PushFailed(4, "slow") }, false,
			Receipt{Revision: 5, At: 100, Took: time.Second, Failed: 5, Problem: "lost"},
		},
		{
			"the next fails", func() bool { return s.PushFailed(7, "slow") }, true,
			Receipt{Revision: 5, At: 100, Took: time.Second, Failed: 7, Problem: "slow"},
		},
		{
			"an older one is acknowledged late", func() bool { return s.Acknowledge(6, 300, 0) }, true,
			Receipt{Revision: 6, At: 300, Failed: 7, Problem: "slow"},
		},
	} {
		if news := tt.do(); news != tt.news {
			t.Errorf("%s: news %v, want %v", tt.name, news, tt.news)
		}
		if got := s.Receipt(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
