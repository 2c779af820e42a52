package slurm

import (
	"os"
	"testing"

	"gonbatch/internal/rundir"
)

// TestRunsNeedsAnAbsolutePath: a job without a script and a log file is not the run's, even if the
// command runs in the run's own folders.
func TestRunsNeedsAnAbsolutePath(t *testing.T) {
	dir := rundir.At(t.TempDir())
	for _, folder := range []string{dir.Path(), dir.Logs()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir.Script(), "#!/bin/bash\n")
		t.Chdir(folder)
		for _, text := range []string{
			"JobId=12 JobName=x\n", "JobId=12 JobName=x\n   Command=(null)\n   StdOut=\n", "JobId=12 JobName=x\n   Command=(null)\n   StdOut=(null)\n",
			"JobId=12 JobName=x\n   Command=job.sh\n   StdOut=job.log\n",
		} {
			if (record{text}).runs(dir) {
				t.Errorf("in %s it is the run's: %q", folder, text)
			}
		}
	}
	if text := "JobId=12 JobName=x\n   StdOut=" + dir.SchedulerLog() + "\n"; !(record{text}).runs(dir) {
		t.Errorf("it is not the run's: %q", text)
	}
}

// TestMovedRun: a job is still the run's after the run directory has been moved.
func TestMovedRun(t *testing.T) {
	dir := rundir.At(t.TempDir())
	write(t, dir.Script(), "#!/bin/bash\n")
	gone, other := "/gone/"+dir.Name()+"/job.sh", t.TempDir()+"/job.sh"
	write(t, other, "#!/bin/bash\n")
	for path, want := range map[string]bool{gone: true, "/gone/x/job.sh": false, other: false, "/gone/" + dir.Name() + "/x.sh": false, "job.sh": false} {
		if got := isScript(path, dir); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}
