package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gonbatch/submit"
)

// MPI is how the ranks of a job find each other: srun's --mpi, and the MPI library that they open.
// Library is set only if the user gave it: the compute nodes may have other names for it, and the
// programs know which libraries go with a launcher.
type MPI struct{ Kind, Library string }

// library is an MPI library with the loader's name for it and the kinds of --mpi that it works
// with, best first.
type library struct {
	soname string
	kinds  []string
}

// libraries are the MPI libraries that the programs can open, the first choice first. libmpi.so.12
// is another name of MPICH, and the name of Intel MPI, Cray MPICH and MVAPICH.
var libraries = []library{
	{"libmpi.so.40", []string{"pmix"}},
	{"libmpich.so.12", []string{"pmi2", "pmix"}},
	{"libmpi.so.12", []string{"pmi2", "pmix", "cray_shasta"}},
	{"libmpi.so", []string{"pmix", "pmi2"}},
	{"libmpich.so", []string{"pmi2", "pmix"}},
}

// findMPI chooses the MPI of spec. It keeps what the user gave, and finds the rest from srun's
// kinds and the libraries for which installed is true. One task needs no MPI.
func (s *Scheduler) findMPI(ctx context.Context, spec submit.JobSpec, installed func(soname string) bool) (MPI, error) {
	given := MPI{Kind: spec.MPI, Library: spec.MPILibrary}
	if given.Kind == "auto" {
		given.Kind = ""
	}
	if given.Kind == "" && spec.Tasks() == 1 {
		return MPI{Kind: "none", Library: given.Library}, nil
	}
	kinds, err := s.mpiKinds(ctx)
	if err != nil && given.Kind != "" && ctx.Err() == nil {
		s.shell.Warn("--mpi=%s cannot be checked: %v", given.Kind, err)
		return given, nil
	}
	if err != nil {
		return MPI{}, fmt.Errorf("cannot find out which MPI the cluster has: %w; give --mpi=pmix or --mpi=pmi2", err)
	}
	if given.Kind != "" && !slices.Contains(kinds, given.Kind) {
		return MPI{}, fmt.Errorf("--mpi=%q: this cluster's srun has %s", given.Kind, strings.Join(kinds, ", "))
	}
	return choose(given, kinds, spec.Modules, installed)
}

// mpiKinds asks srun for its kinds of --mpi.
func (s *Scheduler) mpiKinds(ctx context.Context) ([]string, error) {
	out, err := s.runner.Run(ctx, "srun", "--mpi=list")
	if err != nil {
		return nil, err
	}
	if kinds := parseKinds(string(out)); len(kinds) > 0 {
		return kinds, nil
	}
	// Before 22.05 the list goes to standard error.
	if out, err = s.runner.Run(ctx, "sh", "-c", "exec srun --mpi=list 2>&1"); err != nil {
		return nil, err
	}
	return parseKinds(string(out)), nil
}

// parseKinds parses the output of "srun --mpi=list": a title, one kind on each line, and in newer
// versions another title with the exact versions of pmix.
func parseKinds(text string) []string {
	var kinds []string
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "srun: ")
		if list, ok := strings.CutPrefix(line, "specific pmix plugin versions available:"); ok {
			kinds = append(kinds, strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })...)
			continue
		}
		if line != "" && !strings.ContainsAny(line, " .:") {
			kinds = append(kinds, line)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// choose completes given. The names of modules come before the libraries installed here, because
// modules may bring another MPI.
func choose(given MPI, kinds, modules []string, installed func(string) bool) (MPI, error) {
	if given.Kind != "" {
		return given, nil
	}
	if given.Library != "" {
		return withKind(given.Library, kinds)
	}
	if soname := moduleLibrary(modules); soname != "" {
		found, err := withKind(soname, kinds)
		return MPI{Kind: found.Kind}, err
	}
	for _, lib := range libraries {
		if !installed(lib.soname) {
			continue
		}
		if kind := firstKind(lib, kinds); kind != "" {
			return MPI{Kind: kind}, nil
		}
	}
	return MPI{}, fmt.Errorf("no MPI library was found here that works with this cluster's srun (--mpi: %s); load one with --module, or name it with --mpi and --mpi-library (Debian: apt install libopenmpi3, or libmpich12)", strings.Join(kinds, ", "))
}

// withKind finds the kind of --mpi for a library by the library's name.
func withKind(name string, kinds []string) (MPI, error) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	for _, lib := range libraries {
		if strings.HasPrefix(base, lib.soname) {
			if kind := firstKind(lib, kinds); kind != "" {
				return MPI{Kind: kind, Library: name}, nil
			}
		}
	}
	return MPI{}, fmt.Errorf("cannot determine which --mpi matches the MPI library %q; give --mpi too: this cluster's srun has %s", name, strings.Join(kinds, ", "))
}

// moduleLibrary returns the MPI library that modules bring, by their names; "" if unknown.
func moduleLibrary(modules []string) string {
	for _, module := range slices.Backward(modules) {
		name := strings.ToLower(module)
		switch {
		case strings.Contains(name, "openmpi"):
			return "libmpi.so.40"
		case strings.Contains(name, "mpich"), strings.Contains(name, "mvapich"), strings.Contains(name, "impi"), strings.Contains(name, "intelmpi"), strings.Contains(name, "intel-mpi"):
			return "libmpi.so.12"
		}
	}
	return ""
}

func firstKind(lib library, kinds []string) string {
	for _, kind := range lib.kinds {
		if slices.Contains(kinds, kind) {
			return kind
		}
	}
	return ""
}
