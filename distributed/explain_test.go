package distributed

import (
	"errors"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

// TestExplain: errors of XLA and CUDA about memory are explained in plain words.
func TestExplain(t *testing.T) {
	tests := []struct {
		name, platform, text string
		want                 []string // Nil if the error must stay unchanged.
	}{
		{"XLA on a GPU", "cuda", "INTERNAL: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.", []string{"out of memory to allocate 8589934592 bytes: the GPU does not have enough", "make the batch or the model smaller"}},
		{"XLA's allocator", "cuda", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.50GiB.", []string{"to allocate 2.50GiB: the GPU"}},
		{"CUDA", "cuda", "failed call to cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory", []string{"out of memory: the GPU does not have enough"}},
		{"XLA on a CPU", "cpu", "RESOURCE_EXHAUSTED: Out of memory allocating 1000000000000 bytes.", []string{"to allocate 1000000000000 bytes: this machine, or the job's share of it (--mem)", "start fewer ranks on a node"}},
		{"another error", "cuda", "INVALID_ARGUMENT: a shape that does not fit", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := &World{platform: test.platform}
			w.environment.Rank, w.environment.Size = 1, 2
			original := errors.New(test.text)
			err := w.Explain(original)
			if !errors.Is(err, original) {
				t.Errorf("the result does not wrap XLA's error: %v", err)
			}
			var failure *FailureError
			if got := errors.As(err, &failure) && failure.Kind == rundir.OutOfMemory; got != (test.want != nil) {
				t.Errorf("out of memory: %v; want %v: %v", got, test.want != nil, err)
			}
			for _, want := range append(test.want, test.text) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
			if test.want != nil && !strings.HasPrefix(err.Error(), "rank 1 on "+hostname()) {
				t.Errorf("the error does not begin with the rank and the host: %v", err)
			}
		})
	}
	if (&World{}).Explain(nil) != nil {
		t.Error("nil became an error")
	}
}
