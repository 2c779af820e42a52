package pjrt

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

var (
	probing sync.Mutex
	probed  = map[compute.Backend]bool{}
)

// probe checks, once for each backend, whether a placeholder in a graph becomes a collective, by
// compiling a minimal program with one. rewrite can't check that: it sees programs only after
// go-xla has written them, and no programs of other backends.
func probe(b compute.Backend) error {
	if registeredRanks() == 0 {
		return errors.New("no transport is registered: call RegisterTransport")
	}
	if l, _ := world(); isPretended(l) {
		return nil // Nothing is reduced.
	}
	probing.Lock()
	defer probing.Unlock()
	if probed[b] {
		return nil
	}
	err := compileOne(b)
	probed[b] = err == nil
	return err
}

func compileOne(b compute.Backend) error {
	before := replaced.Load()
	g := graph.NewGraph(b, "gonbatch_probe")
	defer g.Finalize()
	sum := does{op: allReduce}.place(graph.Parameter(g, "x", shapes.Make(dtypes.Float32)), graph.Identity)
	if err := g.Compile(sum); err != nil {
		return err
	}
	if n := replaced.Load() - before; n != 1 {
		return fmt.Errorf("a program with one all-reduce for the backend %s reached XLA with %d, so each rank would compute alone: use World.Backend(). If you do, %s", b.Name(), n, unknownForm())
	}
	return nil
}
