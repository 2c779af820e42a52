package distributed

import (
	"cmp"
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

// rankCPUs are the host of a rank and the CPUs that the rank may use there.
type rankCPUs struct {
	Host    uint64 // A hash.
	Machine uint64 // A hash: the same for containers on one machine.
	CPUs    unix.CPUSet
}

// cpusOfRanks returns those of all ranks, in order of rank. It is collective. The kernel's boot ID
// identifies the machine. A host's name doesn't suffice: containers can share one.
func cpusOfRanks(peers communicator, allowed []int) ([]rankCPUs, error) {
	process, _ := rundir.ThisProcess() // Without /proc, the host's name must do.
	mine := rankCPUs{Host: hashOf(process.Boot + process.Host), Machine: hashOf(cmp.Or(process.Boot, process.Host))}
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

// crowded reports whether ranks outnumber the CPUs that they share: whether for some rank, more
// ranks than it has CPUs may use no others.
func crowded(all []rankCPUs) bool {
	ranks := map[rankCPUs]int{}
	for _, r := range all {
		r.Host = 0
		ranks[r]++
	}
	for r := range ranks {
		n := 0
		for other, count := range ranks {
			if other.Machine == r.Machine && within(other.CPUs, r.CPUs) {
				n += count
			}
		}
		if n > r.CPUs.Count() {
			return true
		}
	}
	return false
}

// within reports whether b has all CPUs of a.
func within(a, b unix.CPUSet) bool {
	for i := range a {
		if a[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

func hashOf(text string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return hash.Sum64()
}
