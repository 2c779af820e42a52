package pjrt

import (
	"regexp"
	"slices"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
)

// Placeholder returns the pattern that finds placeholders in programs.
func Placeholder() string { return placeholder.String() }

// SetPlaceholder replaces the pattern, as if go-xla wrote programs in another form: before the
// backend is probed, or after.
func SetPlaceholder(pattern string, before bool) {
	placeholder = regexp.MustCompile(pattern)
	if before {
		probed = map[compute.Backend]bool{}
	}
}

// Ranks returns the number of ranks.
var Ranks = registeredRanks

// SetRanks changes the number of ranks.
func SetRanks(n int) { ranks = n }

// ShareMemory marks the parameters of a program whose memory results may reuse.
var ShareMemory = shareMemory

// SetShare replaces that function for all programs. The returned function restores it.
func SetShare(other func(string) (string, int)) (reset func()) {
	share = other
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
	return replicate(slices.Concat(given, Flag(shardAutotuning, false)), devices)
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
	return replicate(given, devices)
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
	before := kernelCalls.Load()
	return func() int64 { return kernelCalls.Load() - before }
}

// SetMinProduct replaces the size from which products are computed by kernels.
func SetMinProduct(n int) { minProduct = n }

// SetMinUpdate replaces the sizes from which updates of variables and sums over rows are.
func SetMinUpdate(n int) { minAdam, minColumns = n, n }

// WithoutOrder runs f, whose programs have products without an order.
func WithoutOrder(f func()) {
	defer func() { orderProducts = ordered }()
	orderProducts = func(module string) string { return module }
	f()
}

// SetMinTrained replaces the size from which a gradient stays in the cache until its update, also
// if it is narrow.
func SetMinTrained(n int) { minTrained, minTrainedSide = n, 1 }

// ReadersIn counts the statements of a program that read each value.
var ReadersIn = readersIn

// WithKernels replaces operations of a program with kernels, and returns how many.
var WithKernels = withKernels

// UseGenerator replaces the statements of a program that generate random bits.
var UseGenerator = useGenerator

// SetGenerator turns the generator on or off.
func SetGenerator(on bool) {
	mu.Lock()
	defer mu.Unlock()
	generatorOn = on
}

// HalfProducts changes a program for GPUs.
var HalfProducts = halfProducts

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
