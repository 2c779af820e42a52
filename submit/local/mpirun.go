package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"gonbatch/submit"
)

// flavour is the MPI implementation of an mpirun: their options differ.
type flavour string

const (
	openMPI flavour = "Open MPI"
	mpich   flavour = "MPICH"
)

// mpirun describes the mpirun on PATH.
type mpirun struct {
	path    string
	flavour flavour
	root    bool
}

// findMPIRun finds mpirun and asks for its flavour. Without an mpirun, it returns none.
func (r Runner) findMPIRun(ctx context.Context) (mpirun, error) {
	look := r.LookPath
	if look == nil {
		look = exec.LookPath
	}
	path, err := look("mpirun")
	if err != nil {
		fmt.Fprintln(r.Err, "no mpirun on PATH: the ranks connect over TCP")
		return mpirun{}, nil
	}
	version, err := submit.ExecRunner{}.Run(ctx, path, "--version")
	if err != nil {
		return mpirun{}, fmt.Errorf("find out which MPI %s belongs to: %w", path, err)
	}
	f, err := parseFlavour(string(version))
	if err != nil {
		return mpirun{}, fmt.Errorf("%s: %w", path, err)
	}
	return mpirun{path: path, flavour: f, root: os.Geteuid() == 0}, nil
}

// parseFlavour reads the output of "mpirun --version". Intel's and MPICH's mpirun are both Hydra.
func parseFlavour(version string) (flavour, error) {
	switch {
	case strings.Contains(version, "Open MPI"), strings.Contains(version, "OpenRTE"):
		return openMPI, nil
	case strings.Contains(version, "HYDRA"), strings.Contains(version, "Intel(R) MPI"):
		return mpich, nil
	}
	first, _, _ := strings.Cut(version, "\n")
	return "", fmt.Errorf("neither Open MPI's mpirun nor MPICH's: --version says %q; put one of them first on PATH", first)
}

// command returns the command that starts n ranks. mpirun binds no ranks, because the programs
// place themselves on CPUs.
func (m mpirun) command(n int, rank []string) []string {
	args := []string{m.path, "-n", strconv.Itoa(n)}
	switch m.flavour {
	case openMPI:
		args = append(args, "--bind-to", "none", "--oversubscribe")
		if m.root {
			args = append(args, "--allow-run-as-root")
		}
	case mpich:
		args = append(args, "-bind-to", "none")
	}
	return append(args, rank...)
}
