package cluster

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// programs are all that a cluster needs, each with its Debian package.
var programs = []struct{ name, pkg string }{
	{"slurmctld", "slurm-wlm"},
	{"slurmd", "slurm-wlm"},
	{"sbatch", "slurm-wlm"},
	{"munged", "munge"},
	{"ip", "iproute2"},
	{"unshare", "util-linux"},
	{"nsenter", "util-linux"},
}

// require skips the test unless a cluster can run here. With CI=true, the test fails instead.
func require(t testing.TB) {
	t.Helper()
	if reason := missing(os.Geteuid(), exec.LookPath); reason != "" {
		skip(t, os.Getenv("CI"), reason)
	}
}

// missing says what a cluster lacks here, or returns "".
func missing(uid int, lookPath func(string) (string, error)) string {
	if uid != 0 {
		return "a SLURM cluster in network namespaces needs root: run the tests as root"
	}
	var names, packages []string
	for _, p := range programs {
		if _, err := lookPath(p.name); err != nil {
			names, packages = append(names, p.name), append(packages, p.pkg)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, ", ") + " not found: run `make setup`, or apt-get install " + strings.Join(unique(packages), " ")
}

func skip(t testing.TB, ci, reason string) {
	t.Helper()
	if ci == "true" {
		t.Fatalf("CI=true, but %s", reason)
	}
	t.Skip(reason)
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if len(out) == 0 || out[len(out)-1] != n {
			out = append(out, n)
		}
	}
	return out
}
