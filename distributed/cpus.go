package distributed

import (
	"encoding/binary"
	"hash/fnv"
	"os"
	"runtime"
	"slices"
	"strconv"

	"gonbatch/distributed/affinity"
	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// cpus are the CPUs that a rank computes on. If they are not bound, only the length of list counts.
type cpus struct {
	list  []int
	bound bool
}

func (c cpus) String() string {
	if c.bound {
		return affinity.Format(c.list)
	}
	return strconv.Itoa(len(c.list)) + " (not bound)"
}

// bindCPUs makes the process use only the CPUs that it was given.
//
// If the launcher binds its ranks, nothing is left to do. Ranks on one node that were given the
// same CPUs divide them among themselves. If the scheduler gave fewer CPUs than this process may
// use, because the site doesn't bind, only the number of threads is limited: there is no way to
// know which CPUs are free.
func bindCPUs(e cluster.Environment, peers communicator) (cpus, error) {
	allowed, err := affinity.Allowed()
	if err != nil {
		return cpus{}, err
	}
	sharing, err := ranksOnSameCPUs(e.Rank, peers, allowed)
	if err != nil {
		return cpus{}, err
	}
	if index := slices.Index(sharing, e.Rank); len(sharing) > 1 {
		mine := affinity.Divide(allowed, index, len(sharing))
		if e.CPUs > 0 && e.CPUs < len(mine) {
			mine = mine[:e.CPUs]
		}
		return cpus{mine, true}, use(mine)
	}
	if e.CPUs > 0 && e.CPUs < len(allowed) {
		return cpus{list: allowed[:e.CPUs]}, limitThreads(e.CPUs)
	}
	return cpus{allowed, true}, nil
}

func use(cpus []int) error {
	if err := affinity.Pin(cpus); err != nil {
		return err
	}
	return limitThreads(len(cpus))
}

// limitThreads sets the number of threads of XLA and of Go.
func limitThreads(n int) error {
	runtime.GOMAXPROCS(max(n, 2)) // At least two, so that Go's garbage collector doesn't block the loader.
	return setXLAThreads(n)
}

// setXLAThreads sets the size of XLA's thread pool on the CPU. XLA's plugin reads it from NPROC
// when it is loaded.
func setXLAThreads(n int) error { return os.Setenv("NPROC", strconv.Itoa(n)) } //nolint:forbidigo // XLA reads it nowhere else

// ranksOnSameCPUs lists, in order, the ranks on this host that may use exactly the same CPUs as
// this rank, including itself.
func ranksOnSameCPUs(rank int, peers communicator, allowed []int) ([]int, error) {
	mine := placeHash(allowed)
	all, err := peers.AllGather(mine)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return []int{rank}, nil
	}
	var same []int
	for other, place := range all {
		if slices.Equal(place, mine) {
			same = append(same, other)
		}
	}
	return same, nil
}

// placeHash identifies a host and a set of its CPUs. It includes the kernel's boot ID, because
// containers can share a host name.
func placeHash(allowed []int) []byte {
	hash := fnv.New64a()
	process, _ := rundir.ThisProcess() // Without /proc, the host's name must do.
	hash.Write([]byte(process.Boot + process.Host + affinity.Format(allowed)))
	return binary.LittleEndian.AppendUint64(nil, hash.Sum64())
}
