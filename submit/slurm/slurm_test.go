package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gonbatch/submit"
)

// fake answers commands by their whole line; an unknown command fails the test.
type fake struct {
	t       *testing.T
	answers map[string]answer
	ran     []string
}

type answer struct {
	out string
	err error
}

func (f *fake) Run(_ context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	f.ran = append(f.ran, line)
	a, ok := f.answers[line]
	if !ok {
		f.t.Errorf("unexpected command: %s", line)
	}
	return []byte(a.out), a.err
}

func commandError(name, output string) error {
	return &submit.CommandError{Name: name, Output: output, Err: errors.New("exit status 1")}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

// schedulerLog has two cells: rank 0 was ended because of rank 1, and the earlier cell's line must
// not count.
const schedulerLog = `srun: error: n9: task 8: Exited with exit code 1
gonbatch: cell train on 2 ranks: /runs/x/bin/train
srun: error: n1: task 0: Terminated
srun: error: n2: tasks 1-3: Exited with exit code 7
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const mpiList = "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin versions available: pmix_v4\n"

func TestFindMPI(t *testing.T) {
	for _, tc := range []struct {
		name      string
		spec      submit.JobSpec
		installed []string
		want      MPI
		err       string
	}{
		{name: "Open MPI", installed: []string{"libmpi.so.40", "libmpich.so.12"}, want: MPI{Kind: "pmix"}},
		{name: "MPICH", installed: []string{"libmpich.so.12"}, want: MPI{Kind: "pmi2"}},
		{name: "Intel MPI", installed: []string{"libmpi.so.12"}, want: MPI{Kind: "pmi2"}},
		{name: "a module's name counts before what is here", spec: submit.JobSpec{Modules: []string{"gcc/12", "mpich/4.1"}}, installed: []string{"libmpi.so.40"}, want: MPI{Kind: "pmi2"}},
		{name: "a given library", spec: submit.JobSpec{MPILibrary: "/opt/mpich/lib/libmpich.so.12"}, want: MPI{Kind: "pmi2", Library: "/opt/mpich/lib/libmpich.so.12"}},
		{name: "a given kind", spec: submit.JobSpec{MPI: "pmix_v4"}, want: MPI{Kind: "pmix_v4"}},
		{name: "both given", spec: submit.JobSpec{MPI: "pmi2", MPILibrary: "libx.so"}, want: MPI{Kind: "pmi2", Library: "libx.so"}},
		{name: "auto", spec: submit.JobSpec{MPI: "auto"}, installed: []string{"libmpi.so.40"}, want: MPI{Kind: "pmix"}},
		{name: "an unknown kind", spec: submit.JobSpec{MPI: "pmi9"}, err: `--mpi="pmi9": this cluster's srun has cray_shasta, none, pmi2, pmix, pmix_v4`},
		{name: "an unknown library", spec: submit.JobSpec{MPILibrary: "libx.so"}, err: `cannot determine which --mpi matches the MPI library "libx.so"; give --mpi too: this cluster's srun has cray_shasta, none, pmi2, pmix, pmix_v4`},
		{name: "no MPI", err: "no MPI library was found here that works with this cluster's srun (--mpi: cray_shasta, none, pmi2, pmix, pmix_v4); load one with --module, or name it with --mpi and --mpi-library (Debian: apt install libopenmpi3, or libmpich12)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.Nodes, tc.spec.TasksPerNode = 2, 1
			installed := func(soname string) bool { return strings.Contains(strings.Join(tc.installed, " ")+" ", soname+" ") }
			got, err := New(submit.Shell{Runner: &fake{t: t, answers: map[string]answer{"srun --mpi=list": {out: mpiList}}}}).findMPI(t.Context(), tc.spec, installed)
			if got != tc.want || fmt.Sprint(err) != orNil(tc.err) {
				t.Errorf("FindMPI = %+v, %v\nwant      %+v, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

// TestUncheckedMPI: a kind of MPI that is given stands even if srun cannot be asked.
func TestUncheckedMPI(t *testing.T) {
	var says strings.Builder
	failing := &fake{t: t, answers: map[string]answer{"srun --mpi=list": {err: commandError("srun", "srun: fatal: no controller")}}}
	s := New(submit.Shell{Runner: failing, Err: &says})
	spec := submit.JobSpec{Nodes: 2, TasksPerNode: 1, MPI: "pmix"}
	if got, err := s.findMPI(t.Context(), spec, nil); err != nil || got.Kind != "pmix" || !strings.Contains(says.String(), "--mpi=pmix cannot be checked: srun: srun: fatal: no controller") {
		t.Errorf("findMPI = %+v, %v; says %s", got, err, says.String())
	}
	spec.MPI = "auto"
	if _, err := s.findMPI(t.Context(), spec, nil); err == nil || !strings.Contains(err.Error(), "give --mpi=pmix or --mpi=pmi2") {
		t.Errorf("auto: %v", err)
	}
}

func TestOneTaskNeedsNoMPI(t *testing.T) {
	runner := &fake{t: t}
	got, err := New(submit.Shell{Runner: runner}).findMPI(t.Context(), submit.JobSpec{Nodes: 1, TasksPerNode: 1}, nil)
	if err != nil || got.Kind != "none" || len(runner.ran) != 0 {
		t.Errorf("FindMPI = %+v, %v after %q", got, err, runner.ran)
	}
}
