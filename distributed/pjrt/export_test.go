package pjrt

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"

	"gonbatch/distributed/stablehlo"
)

// SetForm changes programs before they are read, as if go-xla wrote them in another form: before
// the backend is probed, or after.
func SetForm(f func(program string) string, before bool) {
	parse = func(program string) (*stablehlo.Module, error) { return stablehlo.Parse(f(program)) }
	if before {
		probed = map[compute.Backend]bool{}
	}
}

// onText makes a pass over the text of programs. It returns one that it doesn't change, or that it
// can't read, as it is.
func onText(pass func(*stablehlo.Module) int) func(string) (string, int) {
	return func(program string) (string, int) {
		m, err := stablehlo.Parse(program)
		if err != nil {
			return program, 0
		}
		n := pass(m)
		return m.String(), n
	}
}

// Ranks returns the number of ranks.
var Ranks = registeredRanks

// SetRanks changes the number of ranks.
func SetRanks(n int) { ranks = n }

// ShareMemory marks the parameters of a program whose memory results may reuse.
var ShareMemory = onText(shareMemory)

// SetShare replaces that function for all programs. The returned function restores it.
func SetShare(other func(string) (string, int)) (reset func()) {
	share = func(m *stablehlo.Module) int {
		out, n := other(m.String())
		changed, err := stablehlo.Parse(out)
		if err != nil {
			panic(err)
		}
		*m = *changed
		return n
	}
	return func() { share = shareMemory }
}

// FileFacts, Unkeepable and Canonical are parts of a key.
var (
	Canonical  = canonical
	FileFacts  = fileFacts
	Unkeepable = unkeepable
)

// UseReplicas makes XLA's own all-reduce, over n devices of this process, the lowering. Each device
// is a rank, for which a goroutine runs programs.
func UseReplicas(n int) {
	mu.Lock()
	defer mu.Unlock()
	setWorld(replicas{n: n}, n)
}

type replicas struct {
	native
	n int
}

func (r replicas) options(_ unsafe.Pointer, program, given []byte) ([]byte, error) {
	if len(collectivesOf(program)) == 0 {
		return given, nil
	}
	devices := make([]int64, r.n)
	for i := range devices {
		devices[i] = int64(i)
	}
	return replicate(slices.Concat(given, Flag(shardAutotuning, false)), devices), nil
}

// Tampering is how Tamper changes compile options.
type Tampering struct {
	// Devices replaces the ranks' devices if it is not nil.
	Devices []int64
	// Sharded leaves sharded autotuning on.
	Sharded bool
}

// Tamper makes programs compile with wrong options.
func Tamper(t Tampering) {
	mu.Lock()
	defer mu.Unlock()
	theLowering = tampered{native{theProcesses.Load()}, t}
	probed = map[compute.Backend]bool{}
}

type tampered struct {
	native
	Tampering
}

func (l tampered) options(client unsafe.Pointer, program, given []byte) ([]byte, error) {
	if len(collectivesOf(program)) == 0 || l.Devices == nil && !l.Sharded {
		return l.native.options(client, program, given)
	}
	devices := l.Devices
	if devices == nil {
		devices = l.processes.devices(client)
	}
	if !l.Sharded {
		given = slices.Concat(given, Flag(shardAutotuning, false))
	}
	return replicate(given, devices), nil
}

// SetEnter makes programs report their collectives to f.
func SetEnter(f func(kind, dtype, count, detail int) (leave func(error) error)) {
	theProcesses.Load().Enter = f
}

// CountKernels turns kernels on or off, and returns a function that counts the operations that were
// replaced since.
func CountKernels(on bool) (count func() int64) {
	mu.Lock()
	kernelsOn = on
	mu.Unlock()
	before := kernelCallsMade.Load()
	return func() int64 { return kernelCallsMade.Load() - before }
}

// SetMinProduct replaces the size from which products are computed by kernels.
func SetMinProduct(n int) { minProduct = n }

// SetMinUpdate replaces the sizes from which updates of variables and sums over rows are.
func SetMinUpdate(n int) { minAdam, minColumns = n, n }

// WithoutOrder runs f, whose programs have products without an order.
func WithoutOrder(f func()) {
	defer func() { orderProducts = true }()
	orderProducts = false
	f()
}

// SetMinTrained replaces the size from which a gradient stays in the cache until its update, also
// if it is narrow.
func SetMinTrained(n int) { minTrained, minTrainedSide = n, 1 }

// ReadersIn counts the operations of a program that read each value.
func ReadersIn(program string) map[string]int {
	m, err := stablehlo.Parse(program)
	if err != nil {
		panic(err)
	}
	f, ok := flowOf(m)
	if !ok {
		panic("no main function")
	}
	return f.readers()
}

// WithKernels replaces operations of a program with kernels, and returns how many.
var WithKernels = onText(withKernels)

// UseGenerator replaces the statements of a program that generate random bits.
var UseGenerator = onText(useGenerator)

// SetGenerator turns the generator on or off.
func SetGenerator(on bool) {
	mu.Lock()
	defer mu.Unlock()
	generatorOn = on
}

// HalfProducts changes a program for GPUs.
var HalfProducts = onText(halfProducts)

// Plainly returns the options without which libraries would pack weights.
var Plainly = plainly

// AddPacking adds an option for the time of a test.
func AddPacking(t *testing.T, name string, off any) {
	before := packing
	packing = append(slices.Clone(packing), struct {
		name string
		off  any
	}{name, off})
	t.Cleanup(func() { packing = before })
}
