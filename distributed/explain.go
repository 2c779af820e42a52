package distributed

import (
	"fmt"
	"regexp"
	"strings"

	"gonbatch/internal/rundir"
)

// outOfMemory matches the messages of XLA and CUDA for a lack of memory.
var outOfMemory = regexp.MustCompile(`RESOURCE_EXHAUSTED|CUDA_ERROR_OUT_OF_MEMORY|[Oo]ut of memory|std::bad_alloc`)

// wanted finds the size that XLA could not allocate.
var wanted = regexp.MustCompile(`(?:allocate|allocating|allocation of(?: size)?) ([0-9][0-9.]* ?(?:[KMGT]i?B|bytes)?)`)

// Explain explains an XLA error in plain words, with the rank and the host, if it knows the error:
// so far, only out of memory. It returns any other error unchanged.
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
	return fmt.Errorf("%s: out of memory%s: %s does not have enough: %s: %w", who, want, place, fix, err)
}
