package distributed

import (
	"fmt"
	"regexp"
	"strings"

	"gonbatch/internal/rundir"
)

// outOfMemory are the words by which XLA and CUDA say that memory is short.
var outOfMemory = regexp.MustCompile(`RESOURCE_EXHAUSTED|CUDA_ERROR_OUT_OF_MEMORY|[Oo]ut of memory|std::bad_alloc`)

// wanted is the size that XLA could not have.
var wanted = regexp.MustCompile(`(?:allocate|allocating|allocation of(?: size)?) ([0-9][0-9.]* ?(?:[KMGT]i?B|bytes)?)`)

// Explain returns an error that says in plain words what an XLA error means, with rank and host, if
// it is a known one: out of memory. It returns any other error unchanged.
func (w *World) Explain(err error) error {
	if err == nil || !outOfMemory.MatchString(err.Error()) {
		return err
	}
	return &FailureError{Kind: rundir.OutOfMemory, Err: explainMemory(fmt.Sprintf("rank %d on %s", w.Rank(), hostname()), w.platform, w.Size(), err)}
}

func explainMemory(who, platform string, size int, err error) error {
	place, fix := "the GPU", "make the batch or the model smaller, or use more GPUs"
	if platform != "cuda" {
		place, fix = "this machine, or the job's share of it (--mem)", "ask for more memory, start fewer ranks on a node, or make the batch or the model smaller"
	}
	if size > 1 {
		fix += "; the batch size is the global one, so more ranks make each one's part smaller"
	}
	want := ""
	if m := wanted.FindStringSubmatch(err.Error()); m != nil {
		want = " to allocate " + strings.TrimSpace(m[1])
	}
	return fmt.Errorf("%s: out of memory%s: %s has not enough: %s: %w", who, want, place, fix, err)
}
