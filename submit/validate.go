package submit

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	cellName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	// memory matches an amount of memory in the notation of every sbatch since 22.05.
	memory = regexp.MustCompile(`^[0-9]+([KMGTkmgt][Bb]?)?$`)
)

// Validate reports everything in s that is wrong for any scheduler; each error names the option,
// the value and the fix. CheckFor asks the scheduler too.
func (s JobSpec) Validate() error {
	return errors.Join(
		CheckCount("nodes", s.Nodes, 1),
		CheckCount("tasks-per-node", s.TasksPerNode, 1),
		CheckCount("cpus-per-task", s.CPUsPerTask, 0),
		CheckCount("gpus-per-node", s.GPUs.Count, 0),
		s.validateTexts(),
		validateMem(s.Mem),
		validateTime(s.Time),
		s.validateRestarts(),
		s.validatePassed(),
		validateNotify(s.Notify),
		validateDevices(s.Devices),
		s.validatePlatform(),
		validateGPUType(s.GPUs.Kind),
		CheckEnv("--env", s.Env),
		s.validateSecrets(),
		validateModules(s.Modules),
		validateList("setup", s.Setup),
		s.validateArgs(),
		s.validateCells(),
	)
}

// CheckFor refuses a job with mistakes, or with options that the scheduler cannot accept.
func (s JobSpec) CheckFor(scheduler Scheduler) error {
	if err := errors.Join(s.Validate(), scheduler.Validate(s)); err != nil {
		return UsageError{Err: err}
	}
	return nil
}

// maxCount is the limit for all counts: SLURM has at most 65,533 nodes.
const maxCount = 65533

// CheckCount refuses an option's count that is below least or above maxCount.
func CheckCount(option string, value, least int) error {
	switch {
	case value < least:
		return fmt.Errorf("--%s=%d: must be at least %d", option, value, least)
	case value > maxCount:
		return fmt.Errorf("--%s=%d: must be at most %d", option, value, maxCount)
	}
	return nil
}

// validateTexts checks the values that become one directive or one word each.
func (s JobSpec) validateTexts() error {
	var errs []error
	for _, t := range []struct{ option, value string }{
		{"name", s.Name}, {"partition", s.Partition}, {"account", s.Account}, {"qos", s.QOS}, {"constraint", s.Constraint},
		{"mpi", s.MPI}, {"mpi-library", s.MPILibrary}, {"template", s.Template},
		{"run-root", s.RunDir.Path()}, {"working directory", s.WorkDir}, {"data folder", s.DataDir}, {"plugin folder", s.PluginDir},
	} {
		errs = append(errs, OneLine(t.option, t.value))
	}
	return errors.Join(errs...)
}

// OneLine refuses control characters in an option's value: a newline would end a directive of the
// batch script and begin another.
func OneLine(option, value string) error {
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

// gpuType matches a GPU type, whose name the cluster's administrator chooses.
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
	if limit == "" || validTime(limit) {
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

// validatePlatform also refuses more ranks on a node than it has GPUs: the ranks would say so only
// on the nodes, after the job has waited in the queue.
func (s JobSpec) validatePlatform() error {
	switch {
	case !slices.Contains([]string{"", "cpu", "cuda"}, s.Platform):
		return fmt.Errorf("--platform=%q: give cpu or cuda", s.Platform)
	case s.Platform == "cuda" && s.GPUs.Count > 0 && s.TasksPerNode > s.GPUs.Count:
		return fmt.Errorf("--tasks-per-node=%d with --gpus-per-node=%s: each rank needs a GPU of its own; request as many GPUs as tasks, or train on CPUs with --platform=cpu", s.TasksPerNode, s.GPUs.String())
	}
	return nil
}

// IsURL reports whether a target of notifications is a URL.
func IsURL(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
}

// validateNotify never repeats a URL: who knows it can post there.
func validateNotify(targets []string) error {
	var errs []error
	for i, target := range targets {
		at, err := url.Parse(target)
		switch {
		case strings.TrimSpace(target) == "" || strings.ContainsRune(target, 0):
			errs = append(errs, fmt.Errorf("--notify, target %d: it is empty: give a URL or a shell command", i+1))
		case IsURL(target) && (err != nil || at.Host == ""):
			errs = append(errs, fmt.Errorf("--notify, target %d: that is not a whole URL", i+1))
		case strings.Contains(target, "://") && !strings.ContainsAny(target, " \t") && !IsURL(target):
			errs = append(errs, fmt.Errorf("--notify, target %d: a URL must begin with http:// or https://", i+1))
		}
	}
	return errors.Join(errs...)
}

func validateModules(modules []string) error {
	var errs []error
	for _, m := range modules {
		if m == "" || strings.ContainsFunc(m, unicode.IsSpace) {
			errs = append(errs, fmt.Errorf("--module=%q: give one module, such as openmpi/4.1; repeat --module for more", m))
		}
		errs = append(errs, OneLine("module", m))
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
			errs = append(errs, fmt.Errorf("cell %q: two cells have that name", cell.Name))
		}
		seen[cell.Name] = true
		errs = append(errs, CheckEnv("%env", cell.Env), OneLine("working directory", cell.Dir))
	}
	return errors.Join(errs...)
}
