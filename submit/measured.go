package submit

import (
	"fmt"
	"math"
	"strings"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// Measured is what a job has used, as far as its ranks' ends have recorded it.
type Measured struct {
	// Memory is the most that the ranks of a cell had on one node together, in bytes, and Node is
	// that node. It counts the largest resident set of each rank, whenever that was.
	Memory int64
	Node   string
	// CPUs is how many CPUs a rank kept busy on average, over all cells that are programs.
	CPUs float64
}

// Measure reads what the job in a run directory has used; ok is false if nothing is recorded.
func Measure(dir rundir.Dir, spec JobSpec) (m Measured, ok bool) {
	starts, err := rundir.CountStarts(dir)
	if err != nil {
		return m, false
	}
	var busy, wall float64
	for start := 1; start <= starts; start++ {
		for _, cell := range spec.Cells {
			ends, err := rundir.ReadEnds(dir, start, cell.Name)
			if err != nil || cell.Shell {
				continue
			}
			nodes := map[string]int64{}
			for _, end := range ends {
				nodes[end.Host] += end.Memory
				busy += end.CPU
				wall += end.Ended.Sub(end.Began).Seconds()
			}
			for node, memory := range nodes {
				if memory > m.Memory {
					m.Memory, m.Node = memory, node
				}
			}
		}
	}
	if wall > 0 {
		m.CPUs = busy / wall
	}
	return m, m.Memory > 0
}

// Advice are the options that fit what a job has used, where those that it had were far off.
type Advice struct {
	Mem         string
	CPUsPerTask int
}

// The memory that advice adds to what was measured: a quarter, and 256 MB for the ranks' launchers.
const (
	spareShare = 1.25
	spareBytes = 256 << 20
)

// Advise returns options for the next job. It advises against nothing that the job didn't ask for.
func (m Measured) Advise(spec JobSpec, outOfMemory bool) (a Advice) {
	const least = 0.75 // An advice that saves less isn't worth the risk.
	if given := Megabytes(spec.Mem); given > 0 {
		need := (float64(m.Memory)*spareShare + spareBytes) / (1 << 20)
		if outOfMemory {
			need = max(need, 1.5*float64(given))
		}
		const near = 0.9 // With so much of it, the next job may need more.
		scarce := outOfMemory || float64(m.Memory) > near*float64(given)*(1<<20)
		if need < least*float64(given) || scarce && need > float64(given) {
			a.Mem = fmt.Sprintf("%.0fM", math.Ceil(need))
			if need > 10<<10 {
				a.Mem = fmt.Sprintf("%.0fG", math.Ceil(need/(1<<10)))
			}
		}
	}
	if need := int(math.Ceil(m.CPUs * 1.1)); spec.CPUsPerTask > 1 && float64(need) < least*float64(spec.CPUsPerTask) {
		a.CPUsPerTask = max(1, need)
	}
	return a
}

// Apply sets the advised options.
func (a Advice) Apply(spec *JobSpec) {
	if a.Mem != "" {
		spec.Mem = a.Mem
	}
	if a.CPUsPerTask > 0 {
		spec.CPUsPerTask = a.CPUsPerTask
	}
}

// String returns the options as the user would type them; "" for none.
func (a Advice) String() string {
	var words []string
	if a.Mem != "" {
		words = append(words, "--mem "+a.Mem)
	}
	if a.CPUsPerTask > 0 {
		words = append(words, fmt.Sprintf("--cpus-per-task %d", a.CPUsPerTask))
	}
	return strings.Join(words, " ")
}

// Describe describes what was used, of what the job had.
func (m Measured) Describe(spec JobSpec) string {
	memory := fmt.Sprintf("%.1f GiB", float64(m.Memory)/(1<<30))
	if m.Memory < 1<<30 {
		memory = fmt.Sprintf("%.0f MiB", float64(m.Memory)/(1<<20))
	}
	if Megabytes(spec.Mem) > 0 {
		memory += " of " + spec.Mem
	}
	memory += " of memory"
	if spec.Nodes > 1 {
		memory += fmt.Sprintf(" on the fullest node (%s)", m.Node)
	}
	cpus := fmt.Sprintf("%.1f CPUs", m.CPUs)
	if spec.CPUsPerTask > 0 {
		cpus = fmt.Sprintf("%.1f of %s", m.CPUs, plural.Of(spec.CPUsPerTask, "CPU"))
	}
	if spec.Tasks() > 1 {
		cpus += " by each rank"
	}
	return memory + ", " + cpus
}
