package cluster

import (
	"errors"
	"slices"
	"testing"
)

func TestMissing(t *testing.T) {
	tests := []struct {
		name   string
		uid    int
		absent []string
		want   string
	}{
		{name: "all there", want: ""},
		{name: "not root", uid: 1000, want: "a SLURM cluster in network namespaces needs root: run the tests as root"},
		{
			name: "two programs of one package", absent: []string{"slurmctld", "sbatch"},
			want: "slurmctld, sbatch not found: run `make setup`, or apt-get install slurm-wlm",
		},
		{
			name: "two packages", absent: []string{"sbatch", "ip"},
			want: "sbatch, ip not found: run `make setup`, or apt-get install slurm-wlm iproute2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lookPath := func(name string) (string, error) {
				if slices.Contains(tt.absent, name) {
					return "", errors.New("not found")
				}
				return "/usr/bin/" + name, nil
			}
			if got := missing(tt.uid, lookPath); got != tt.want {
				t.Errorf("missing: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSkip(t *testing.T) {
	tests := []struct {
		name, ci        string
		failed, skipped bool
	}{
		{name: "on a user's machine", skipped: true},
		{name: "on a build machine", ci: "true", failed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := &recorder{TB: t}
			skip(rec, tt.ci, "sbatch not found")
			if rec.failed != tt.failed || rec.skipped != tt.skipped {
				t.Errorf("failed %v, skipped %v; want %v, %v", rec.failed, rec.skipped, tt.failed, tt.skipped)
			}
		})
	}
}

// recorder is a testing.TB that records a failure or a skip and continues.
type recorder struct {
	testing.TB
	failed, skipped bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true }
func (r *recorder) Skip(...any) {
	if !r.failed {
		r.skipped = true
	}
}
