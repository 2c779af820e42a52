package machine

import "testing"

func TestLacks(t *testing.T) {
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
			lacks(rec, tt.ci, "sbatch not found")
			if rec.failed != tt.failed || rec.skipped != tt.skipped {
				t.Errorf("failed %v, skipped %v; want %v, %v", rec.failed, rec.skipped, tt.failed, tt.skipped)
			}
		})
	}
}

// recorder is a testing.TB that notes a failure or a skip and continues.
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
