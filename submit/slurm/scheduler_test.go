package slurm

import (
	"testing"

	"gonbatch/submit"
)

// TestPlatform: the login node's own GPU does not count.
func TestPlatform(t *testing.T) {
	s := New(submit.Shell{})
	if got := s.Platform(submit.JobSpec{}); got != "" {
		t.Errorf("without GPUs: platform %q", got)
	}
	if got := s.Platform(submit.JobSpec{GPUs: submit.GPUs{Count: 2}}); got != "cuda" {
		t.Errorf("with GPUs: platform %q", got)
	}
}
