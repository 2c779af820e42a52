package tcp_test

import (
	"fmt"
	"testing"

	"gonbatch/distributed/tcp"
)

// BenchmarkAllReduce measures all-reduces between ranks in this process.
func BenchmarkAllReduce(b *testing.B) {
	for _, ranks := range []int{2, 4} {
		for _, bytes := range []int{8, 4 << 10, 8 << 10, 32 << 10, 1 << 20, 32 << 20} {
			b.Run(fmt.Sprintf("%d ranks/%d bytes", ranks, bytes), func(b *testing.B) {
				onRanks(b, ranks, func(c *tcp.Comm) {
					values := make([]float32, bytes/4)
					for range b.N {
						if err := tcp.AllReduce(c, values); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
