package submit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	cellName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	// memory is what sbatch 22.05 and later read as --mem.
	memory = regexp.MustCompile(`^[0-9]+([KMGTkmgt][Bb]?)?$`)
)

// Validate tells everything that is wrong with s, each error naming the option, the value and the
// fix.
func (s JobSpec) Validate() error {
	return errors.Join(
		atLeast("nodes", s.Nodes, 1),
		atLeast("tasks-per-node", s.TasksPerNode, 1),
		atLeast("cpus-per-task", s.CPUsPerTask, 0),
		atLeast("gpus-per-node", s.GPUs.Count, 0),
		s.validateTexts(),
		validateMem(s.Mem),
		validateTime(s.Time),
		s.validateRestarts(),
		validateDevices(s.Devices),
		s.validatePlatform(),
		validateGPUType(s.GPUs.Kind),
		validateEnv("--env", s.Env),
		s.validateSecrets(),
		validateModules(s.Modules),
		validateList("setup", s.Setup),
		s.validateArgs(),
		s.validateCells(),
		validateDirectives(s.Directives),
	)
}

func atLeast(option string, value, least int) error {
	if value >= least {
		return nil
	}
	return fmt.Errorf("--%s=%d: must be at least %d", option, value, least)
}

// validateTexts checks the values that become one directive or one word each.
func (s JobSpec) validateTexts() error {
	var errs []error
	for _, t := range []struct{ option, value string }{
		{"name", s.Name}, {"partition", s.Partition}, {"account", s.Account}, {"qos", s.QOS}, {"constraint", s.Constraint},
		{"mpi", s.MPI}, {"mpi-library", s.MPILibrary}, {"template", s.Template},
		{"run-root", s.RunDir.Path()}, {"working directory", s.WorkDir}, {"data folder", s.DataDir}, {"plugin folder", s.PluginDir},
	} {
		errs = append(errs, oneLine(t.option, t.value))
	}
	return errors.Join(errs...)
}

// oneLine refuses control characters: a newline would end a directive and begin another.
func oneLine(option, value string) error {
	i := strings.IndexFunc(value, unicode.IsControl)
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s=%q: has the control character %q; give a value on one line", flagName(option), value, value[i])
}

func flagName(option string) string {
	if strings.Contains(option, " ") {
		return option
	}
	return "--" + option
}

// gpuType is a name as in SLURM's gres.conf.
var gpuType = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)

func validateGPUType(name string) error {
	if gpuType.MatchString(name) {
		return nil
	}
	return fmt.Errorf("--gpus-per-node: %q is not a type of GPU; give a number, or TYPE:NUMBER, such as a100:4", name)
}

func validateMem(mem string) error {
	if mem == "" || memory.MatchString(mem) {
		return nil
	}
	return fmt.Errorf("--mem=%q: not an amount of memory; give megabytes, or a number with K, M, G or T, such as 8G", mem)
}

func validateTime(limit string) error {
	if limit == "" || ValidTime(limit) {
		return nil
	}
	return fmt.Errorf("--time=%q: not a time limit; give minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S or UNLIMITED, such as 1:30:00", limit)
}

func validateDevices(devices string) error {
	if n, err := strconv.Atoi(devices); devices == "" || devices == "all" || err == nil && n > 0 {
		return nil
	}
	return fmt.Errorf("--devices=%q: give a number of at least 1, or all", devices)
}

// validatePlatform refuses ranks on GPUs too: the library has no collectives between them, and
// would only say so on the nodes, after the job has waited for them.
func (s JobSpec) validatePlatform() error {
	switch {
	case !slices.Contains([]string{"", "cpu", "cuda"}, s.Platform):
		return fmt.Errorf("--platform=%q: give cpu or cuda", s.Platform)
	case s.Platform == "cuda" && s.Tasks() > 1:
		return fmt.Errorf("%d ranks on GPUs (--platform=cuda): ranks cannot train together on GPUs yet; let one process drive all GPUs of one node "+
			"by --devices=all (on a cluster with --nodes=1 --tasks-per-node=1), or train on CPUs by --platform=cpu", s.Tasks())
	}
	return nil
}

func validateModules(modules []string) error {
	var errs []error
	for _, m := range modules {
		if m == "" || strings.ContainsFunc(m, unicode.IsSpace) {
			errs = append(errs, fmt.Errorf("--module=%q: give one module, such as openmpi/4.1; repeat --module for more", m))
		}
		errs = append(errs, oneLine("module", m))
	}
	return errors.Join(errs...)
}

func validateList(option string, values []string) error {
	for _, v := range values {
		if strings.TrimSpace(v) == "" || strings.ContainsRune(v, 0) {
			return fmt.Errorf("--%s=%q: give a shell command", option, v)
		}
	}
	return nil
}

func (s JobSpec) validateArgs() error {
	for _, arg := range s.Args {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("program argument %q: has a NUL byte", arg)
		}
	}
	return nil
}

func (s JobSpec) validateCells() error {
	if len(s.Cells) == 0 {
		return errors.New("nothing to run: the job has no cell")
	}
	seen := map[string]bool{}
	var errs []error
	for _, cell := range s.Cells {
		switch {
		case !cellName.MatchString(cell.Name):
			errs = append(errs, fmt.Errorf("cell %q: a name has letters, digits, _, . and - only, and no leading dash or dot", cell.Name))
		case seen[cell.Name]:
			errs = append(errs, fmt.Errorf("cell %q: there are two of that name", cell.Name))
		}
		seen[cell.Name] = true
		errs = append(errs, validateEnv("%env", cell.Env), oneLine("working directory", cell.Dir))
	}
	return errors.Join(errs...)
}
