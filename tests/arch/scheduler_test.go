package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// schedulerFolders are the folders of the schedulers.
	schedulerFolders = []string{"submit/slurm", "slurmtmpl", "submit/local"}
	// schedulerHelp are files whose help texts name schedulers.
	schedulerHelp = []string{"cmd/submit/root.go", "cmd/submit/resume.go", "cmd/submit/options.go"}
)

// registration is the file that lists the schedulers, and the only one that imports them.
const registration = "cmd/submit/scheduler.go"

// TestSchedulersAreApart checks that only a scheduler's own folder and the registration know the
// scheduler and the names of its commands. Package cluster has the variables of all.
func TestSchedulersAreApart(t *testing.T) {
	command := regexp.MustCompile(`\b(sbatch|srun|squeue|sacct|scancel|scontrol|SLURM)\b`)
	imports := regexp.MustCompile(`(?m)^\s*(?:\w+ )?"gonbatch/(?:submit/slurm|submit/local|slurmtmpl)"$`)
	eachFile(t, func(name string) {
		parts := []string{"submit", "cmd", "internal/rundir"}
		if within(name, parts) == "" || within(name, schedulerFolders) != "" || path.Dir(name) == contract {
			return
		}
		text, err := os.ReadFile(filepath.Join(sourceRoot(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if found := imports.Find(text); found != nil && name != registration {
			t.Errorf("%s imports %s: ask the submit.Scheduler; %s lists them", name, strings.TrimSpace(string(found)), registration)
		}
		for _, literal := range literals(t, name) {
			if command.MatchString(literal.text) && !slices.Contains(schedulerHelp, name) {
				t.Errorf("%s:%d mentions SLURM in %.60q: ask the submit.Scheduler", name, literal.line, literal.text)
			}
		}
	})
}
