package consensus

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func BenchmarkPropose(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			r := start(b, testConfig(b))
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						cmd := make([]byte, 250)
						copy(cmd, fmt.Sprint("instance-", i%100_000))
						if _, err := r.Propose(b.Context(), cmd); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "proposals/s")
			b.ReportMetric(float64(b.N)/float64(r.Stats().Writes), "entries/write")
		})
	}
}
