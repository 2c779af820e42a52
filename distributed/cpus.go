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
	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
	"gonbatch/internal/quota"
	"gonbatch/internal/rundir"
)

// cpus are the CPUs that a rank computes on. If they are not bound, only the length of list counts.
type cpus struct {
	list  []int
	bound bool
	// quota says that a control group's quota limits the number.
	quota bool
	// crowd are the ranks that share too few CPUs.
	crowd crowd
	// unknown is why the quota is unknown.
	unknown error
}

func (c cpus) String() string {
	switch {
	case c.quota:
		return strconv.Itoa(len(c.list)) + " (a quota)"
	case c.bound:
		return affinity.Format(c.list)
	}
	return strconv.Itoa(len(c.list)) + " (not bound)"
}

// bindCPUs makes the process use only the CPUs that it was given. It is collective.
//
// If the launcher binds its ranks, nothing is left to do. Ranks on one node that were given the
// same CPUs divide them among themselves. If the scheduler gave fewer CPUs than this process may
// use, because the site doesn't bind, only the number of threads is limited: there is no way to
// know which CPUs are free. The same holds for the quota of a control group, which its ranks divide
// among themselves.
func bindCPUs(e cluster.Environment, peers communicator) (cpus, error) {
	allowed, err := affinity.Allowed()
	if err != nil {
		return cpus{}, err
	}
	limit, unknown := quota.Read()
	all, err := cpusOfRanks(peers, allowed, limit)
	if err != nil {
		return cpus{}, err
	}
	crowd := crowded(all)
	if crowd.ranks > 0 {
		peers.Crowded()
	}
	c, given := choose(e, all, allowed)
	c.crowd, c.unknown = crowd, unknown
	switch {
	case given:
		return c, nil
	case c.bound:
		return c, use(c.list)
	}
	return c, limitThreads(len(c.list))
}

// choose returns the CPUs that the rank computes on, and whether the process has them already.
func choose(e cluster.Environment, all []rankCPUs, allowed []int) (c cpus, given bool) {
	sharing := ranksOnSameCPUs(all, e.Rank)
	mine := affinity.Divide(allowed, slices.Index(sharing, e.Rank), len(sharing))
	if share := shareOfQuota(all, e.Rank); share > 0 && share*len(sharing) < len(allowed) {
		if e.CPUs > 0 && e.CPUs < share {
			return cpus{list: allowed[:e.CPUs]}, false
		}
		return cpus{list: allowed[:share], quota: true}, false
	}
	fewer := e.CPUs > 0 && e.CPUs < len(mine)
	if fewer {
		mine = mine[:e.CPUs]
	}
	return cpus{list: mine, bound: len(sharing) > 1 || !fewer}, len(sharing) == 1 && !fewer
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
	// Quota is how many CPUs its control group may use, or 0. Group identifies it.
	Quota, Group uint64
}

// cpusOfRanks returns those of all ranks, in order of rank. It is collective. The kernel's boot ID
// identifies the machine. A host's name doesn't suffice: containers can share one.
func cpusOfRanks(peers communicator, allowed []int, limit quota.Quota) ([]rankCPUs, error) {
	process, _ := rundir.ThisProcess() // Without /proc, the host's name must do.
	mine := rankCPUs{Host: hashOf(process.Boot + process.Host), Machine: hashOf(cmp.Or(process.Boot, process.Host))}
	for _, cpu := range allowed {
		mine.CPUs.Set(cpu)
	}
	mine.Quota, mine.Group = uint64(limit.CPUs), limit.Group
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
		if mine := all[rank]; theirs.Host == mine.Host && theirs.CPUs == mine.CPUs {
			same = append(same, other)
		}
	}
	return same
}

// shareOfQuota returns the rank's share of its control group's quota, at least 1, or 0 if there is
// none.
func shareOfQuota(all []rankCPUs, rank int) int {
	mine, n := all[rank], 0
	for _, theirs := range all {
		if theirs.sharesQuota(mine) {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return max(int(mine.Quota)/n, 1)
}

// sharesQuota reports whether two ranks are in the same control group, which has a quota.
func (r rankCPUs) sharesQuota(other rankCPUs) bool {
	return r.Quota > 0 && r.Machine == other.Machine && r.Group == other.Group
}

// crowd are ranks of one machine that outnumber the CPUs that they share. Without any, it is zero.
type crowd struct{ ranks, cpus int }

// String says what a crowd costs; "" if there is none.
func (c crowd) String() string {
	if c.ranks == 0 {
		return ""
	}
	return fmt.Sprintf("warning: %s of one machine share %s and compute in turn: %s there would train at least as fast",
		plural.Of(c.ranks, "rank"), plural.Of(c.cpus, "CPU"), plural.Of(c.cpus, "rank"))
}

// crowdWarning says so if ranks that compute on CPUs outnumber them.
func (w *World) crowdWarning() string {
	if w.platform != plugin.CPU {
		return ""
	}
	return w.cpus.crowd.String()
}

// sayCPUs says in the log what is wrong with the CPUs. If submit runs the job on its own machine,
// it has said that the ranks outnumber them.
func (w *World) sayCPUs() {
	if w.environment.JobID != "" {
		w.sayOnce(w.crowdWarning())
	}
	if err := w.cpus.unknown; err != nil {
		w.sayOnce(fmt.Sprintf("warning: %v", err))
	}
}

// crowded returns the ranks, if any, that outnumber the CPUs that they share: more ranks than some
// rank has CPUs may use no others, or more than its quota are in its control group.
func crowded(all []rankCPUs) (worst crowd) {
	ranks := map[rankCPUs]int{}
	var kinds []rankCPUs
	for _, r := range all {
		r.Host = 0
		if ranks[r]++; ranks[r] == 1 {
			kinds = append(kinds, r)
		}
	}
	for _, r := range kinds {
		onCPUs, inGroup := crowd{cpus: r.CPUs.Count()}, crowd{cpus: int(r.Quota)}
		for other, count := range ranks {
			if other.Machine == r.Machine && within(other.CPUs, r.CPUs) {
				onCPUs.ranks += count
			}
			if other.sharesQuota(r) {
				inGroup.ranks += count
			}
		}
		for _, c := range []crowd{onCPUs, inGroup} {
			if c.ranks > c.cpus && c.ranks*max(worst.cpus, 1) > worst.ranks*c.cpus {
				worst = c
			}
		}
	}
	return worst
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
