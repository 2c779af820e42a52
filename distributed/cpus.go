package distributed

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

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

// bindCPUs makes the process use only the CPUs that it was given. It is collective.
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
	all, err := cpusOfRanks(peers, allowed)
	if err != nil {
		return cpus{}, err
	}
	if crowded(all) {
		peers.Crowded()
	}
	sharing := ranksOnSameCPUs(all, e.Rank)
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

// rankCPUs are the machine of a rank and the CPUs that the rank may use there.
type rankCPUs struct {
	Machine uint64 // A hash.
	CPUs    unix.CPUSet
}

// cpusOfRanks returns those of all ranks, in order of rank. It is collective. The machine's
// identity includes the kernel's boot ID, because containers can share a host name.
func cpusOfRanks(peers communicator, allowed []int) ([]rankCPUs, error) {
	process, _ := rundir.ThisProcess() // Without /proc, the host's name must do.
	hash := fnv.New64a()
	hash.Write([]byte(process.Boot + process.Host))
	mine := rankCPUs{Machine: hash.Sum64()}
	for _, cpu := range allowed {
		mine.CPUs.Set(cpu)
	}
	text, err := binary.Append(nil, binary.LittleEndian, mine)
	if err != nil {
		return nil, err
	}
	texts, err := peers.AllGather(text)
	if err != nil {
		return nil, err
	}
	all := make([]rankCPUs, len(texts))
	for rank, text := range texts {
		if _, err := binary.Decode(text, binary.LittleEndian, &all[rank]); err != nil {
			return nil, fmt.Errorf("decode the CPUs of rank %d: %w", rank, err)
		}
	}
	return all, nil
}

// ranksOnSameCPUs lists, in order, the ranks on the rank's machine that may use exactly the same
// CPUs, including itself.
func ranksOnSameCPUs(all []rankCPUs, rank int) (same []int) {
	for other, theirs := range all {
		if theirs == all[rank] {
			same = append(same, other)
		}
	}
	return same
}

// crowded reports whether the ranks of some machine outnumber the CPUs that they may use together.
func crowded(all []rankCPUs) bool {
	ranks, usable := map[uint64]int{}, map[uint64]*unix.CPUSet{}
	for _, rank := range all {
		if ranks[rank.Machine]++; usable[rank.Machine] == nil {
			usable[rank.Machine] = &unix.CPUSet{}
		}
		for i, word := range rank.CPUs {
			usable[rank.Machine][i] |= word
		}
	}
	for machine, n := range ranks {
		if n > usable[machine].Count() {
			return true
		}
	}
	return false
}
