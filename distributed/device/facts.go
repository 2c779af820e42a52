// Package device checks whether the ranks of a job have the GPUs that they need, before XLA fails
// with less helpful errors. It finds missing and hidden GPUs, an invalid CUDA_VISIBLE_DEVICES, two
// ranks on one GPU, and more ranks than GPUs.
//
//	facts := device.Look("/", os.LookupEnv)   // on each rank
//	facts.Rank, facts.Platform = rank, "cuda"
//	warnings, err := device.Check(all)        // with the facts of all ranks, the same on all of them
//	index, err := facts.Pick()                // which of the visible GPUs is this rank's
//
// It opens no GPU for computation and needs none: it looks at /dev and at the environment.
package device

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/cluster"
)

// Facts are what a rank knows about GPUs.
type Facts struct {
	Rank, Size int
	Host       string
	// LocalRank is the rank's number on its host.
	LocalRank int
	// Platform is what the rank computes on: "cuda" or "cpu". Asked means that the user chose it.
	Platform string
	Asked    bool
	// GPUs are the numbers N of the devices /dev/nvidiaN that this process may open.
	GPUs []int
	// Closed is the number of GPUs that it may not open.
	Closed int
	// Visible is CUDA_VISIBLE_DEVICES. IsSet reports whether it is set.
	Visible string
	IsSet   bool
	// Granted is what the scheduler granted, such as "SLURM_GPUS_ON_NODE=2"; empty if it doesn't
	// say.
	Granted string
}

// visibleVariable is CUDA's variable for the visible GPUs.
const visibleVariable = "CUDA_VISIBLE_DEVICES"

// Look returns what this process sees. root is "/", except in tests.
func Look(root string, lookup func(string) (string, bool)) Facts {
	var f Facts
	f.Visible, f.IsSet = lookup(visibleVariable)
	f.Granted = cluster.GPUs(func(name string) string {
		value, _ := lookup(name)
		return value
	})
	nodes, _ := filepath.Glob(filepath.Join(root, "dev", "nvidia[0-9]*")) // The pattern is well formed.
	for _, node := range nodes {
		number, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(node), "nvidia"))
		if err != nil {
			continue
		}
		// Schedulers deny access to the devices of other jobs, but don't hide them.
		file, err := os.OpenFile(node, os.O_RDWR, 0)
		if err != nil {
			f.Closed++
			continue
		}
		_ = file.Close() // It was opened only to check access.
		f.GPUs = append(f.GPUs, number)
	}
	slices.Sort(f.GPUs)
	return f
}

// who returns a name such as "rank 3 on n2".
func (f Facts) who() string { return fmt.Sprintf("rank %d on %s", f.Rank, f.Host) }
