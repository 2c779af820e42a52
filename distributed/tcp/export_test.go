package tcp

import (
	"net"
	"sync/atomic"
	"unsafe"
)

// Work is what a rank has sent and received.
type Work struct{ Messages, Sent, Received atomic.Int64 }

// counted is a connection whose traffic is counted.
type counted struct {
	net.Conn
	work *Work
}

func (c counted) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	c.work.Messages.Add(1)
	c.work.Sent.Add(int64(n))
	return n, err
}

func (c counted) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	c.work.Received.Add(int64(n))
	return n, err
}

// Count counts the traffic of a rank from now on, over the connections that it has.
func Count(c *Comm) *Work {
	work := &Work{}
	for rank, conn := range c.direct.conns {
		c.direct.conns[rank] = counted{conn, work}
	}
	for _, t := range append(c.teams, c.world) {
		t.from, t.to = t.member(-1), t.member(1)
	}
	return work
}

// AllReduce is Comm.AllReduce for elements of any type.
func AllReduce[T element](c *Comm, values []T) error {
	return c.sum(typeOf[T](), add[T], bytesOf(values))
}

// ReduceScatter is a reduce-scatter of the host, which has no use for one.
func ReduceScatter[T element](c *Comm, in, out []T) error {
	return c.do("reduce-scatter", func() error {
		return c.world.scatter(intent{kind: kindReduceScatter, dtype: typeOf[T]()}, add[T], bytesOf(in), bytesOf(out))
	})
}

func typeOf[T element]() int {
	return map[any]int{int32(0): typeInt32, int64(0): typeInt64, float32(0): typeFloat32, float64(0): typeFloat64}[*new(T)]
}

// Team looks up the team of this rank.
func Team(c *Comm, places []int64) error {
	_, err := c.teamOf(places)
	return err
}

// Treed reports whether the rank has the connections of a tree.
func Treed(c *Comm) bool { return c.world.treed }

// Call is a collective of a compiled program, with the numbers of a transport.
type Call struct {
	Kind, Type, Count, Reduction, Root int
	Places                             []int64
	In, Out                            []byte
}

// Run runs the collective on a ring of this process, which may have those of other ranks.
func Run(c *Comm, l Call) error {
	return (&call{kind: l.Kind, in: unsafe.Pointer(unsafe.SliceData(l.In)), out: unsafe.Pointer(unsafe.SliceData(l.Out)), bytes: l.Count * sizes[l.Type], dtype: l.Type,
		reduction: l.Reduction, root: l.Root, places: l.Places}).run(c)
}
