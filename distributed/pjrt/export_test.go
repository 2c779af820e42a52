package pjrt

import (
	"regexp"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
)

// Placeholder is the pattern that finds placeholders in programs.
func Placeholder() string { return placeholder.String() }

// SetPlaceholder makes the pattern another one, as if go-xla wrote programs in another form, before
// or after the backend was probed.
func SetPlaceholder(pattern string, before bool) {
	placeholder = regexp.MustCompile(pattern)
	if before {
		probed = map[compute.Backend]bool{}
	}
}

// SetRanks makes the number of ranks another one.
func SetRanks(n int) { ranks = n }

// ShareMemory marks the parameters of a program that results may have the memory of.
var ShareMemory = shareMemory

// SetShare has another function do that for all programs, until the function that it returns is
// called.
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

// UseReplicas makes XLA's own all-reduce, over so many devices of this process, the lowering: each
// device is a rank, and a goroutine that runs programs on it.
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

// Tampering is what Tamper does to compile options.
type Tampering struct {
	// Devices are those of the ranks, if not nil.
	Devices []int64
	// Sharded leaves the autotuning as it is.
	Sharded bool
}

// Tamper has programs compiled by wrong options.
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

// SetEnter has collectives of programs reported to f.
func SetEnter(f func(dtype, count int) (leave func(error) error)) { theProcesses.Load().Enter = f }
