package submit

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// PassedOption is an option of sbatch that a job passes on to the scheduler: it means nothing to
// submit.
type PassedOption struct {
	// Name and Letter are sbatch's; Letter may be "".
	Name, Letter, Usage string
	// Bare is set if the option needs no value.
	Bare bool
	// Once is set if the option is about one start of the run: a resumed run doesn't keep it.
	Once bool
	// parse returns the value as sbatch reads it; nil takes any word.
	parse func(string) (string, error)
}

// PassedOptions are all of these options.
var PassedOptions = []PassedOption{
	{Name: "dependency", Letter: "d", Once: true, parse: parseDependency, Usage: "jobs that this one waits for, such as afterok:4711"},
	{Name: "kill-on-invalid-dep", Once: true, Usage: "whether to remove the job if its dependency can't be met any more: yes or no (--after: yes)"},
	{Name: "nodelist", Letter: "w", Usage: "nodes that the job must get, such as n[1-4]"},
	{Name: "exclude", Letter: "x", Usage: "nodes that the job must not get"},
	{Name: "exclusive", Bare: true, parse: parseExclusive, Usage: "get whole nodes, which no other job shares"},
	{Name: "reservation", Usage: "reservation whose nodes the job may use"},
	{Name: "mem-per-cpu", parse: ParseMemory, Usage: "memory for each CPU, instead of --mem"},
	{Name: "mem-per-gpu", parse: ParseMemory, Usage: "memory for each GPU, instead of --mem"},
	{Name: "begin", Letter: "b", Once: true, Usage: "don't start before this time, such as 22:00 or now+2hours"},
	{Name: "deadline", Once: true, Usage: "remove the job if it can't end before this time"},
	{Name: "mail-type", parse: parseMailType, Usage: "events to mail about: BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, ALL, ..."},
	{Name: "mail-user", Usage: "who gets the mail (default: you)"},
	{Name: "clusters", Letter: "M", Usage: "clusters of which one gets the job"},
	{Name: "hint", parse: parseHint, Usage: "how the ranks use CPUs: compute_bound, memory_bound, multithread or nomultithread"},
}

// IsPassed reports whether sbatch's option is one of PassedOptions.
func IsPassed(name string) bool {
	return slices.ContainsFunc(PassedOptions, func(o PassedOption) bool { return o.Name == name })
}

// Parse returns the value as sbatch reads it.
func (o PassedOption) Parse(text string) (string, error) {
	switch {
	case o.Bare && slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(text)):
		return "", nil
	case strings.TrimSpace(text) == "":
		return "", errors.New("it is empty: give a value, or leave the option out")
	case o.parse != nil:
		return o.parse(text)
	case strings.ContainsFunc(text, unicode.IsSpace):
		return "", errors.New("it has a space: give one word")
	}
	return text, nil
}

// dependency matches the parts of a dependency that sbatch knows.
var dependency = regexp.MustCompile(`^(after|afterany|afterok|afternotok|aftercorr|afterburstbuffer)(:[0-9]+(_([0-9]+|\*))?(\+[0-9]+)?)+$|^singleton$`)

func parseDependency(text string) (string, error) {
	if strings.Contains(text, ",") && strings.Contains(text, "?") {
		return "", errors.New("with a , all of the parts count, and with a ? one of them: give only one of these")
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '?' }) {
		if strings.Trim(part, "0123456789_") == "" {
			return "", fmt.Errorf("give afterok:%s to start if that job succeeds, or afterany:%[1]s to start however it ends", part)
		}
		if !dependency.MatchString(part) {
			return "", fmt.Errorf("%q is none of afterok:JOB, afterany:JOB, afternotok:JOB, after:JOB, aftercorr:JOB and singleton", part)
		}
	}
	return text, nil
}

// mailTypes are the events of sbatch's --mail-type.
var mailTypes = []string{
	"NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
}

func parseMailType(text string) (string, error) {
	upper := strings.ToUpper(text)
	for name := range strings.SplitSeq(upper, ",") {
		if !slices.Contains(mailTypes, name) {
			return "", fmt.Errorf("%q is not an event: give some of %s, with commas between them", name, strings.Join(mailTypes, ", "))
		}
	}
	return upper, nil
}

func parseExclusive(text string) (string, error) {
	if !slices.Contains([]string{"user", "mcs", "topo"}, text) {
		return "", errors.New("give true or false, or user, mcs or topo")
	}
	return text, nil
}

func parseHint(text string) (string, error) {
	hints := []string{"compute_bound", "memory_bound", "multithread", "nomultithread"}
	if !slices.Contains(hints, text) {
		return "", fmt.Errorf("give one of %s", strings.Join(hints, ", "))
	}
	return text, nil
}

// IsOff reports whether a text takes an option back: "none", or "false" of a bare one.
func (o PassedOption) IsOff(text string) bool {
	return strings.EqualFold(text, "none") || o.Bare && slices.Contains([]string{"false", "no", "off"}, strings.ToLower(text))
}

// SetPassed sets one of PassedOptions.
func (s *JobSpec) SetPassed(name, value string) {
	if s.Passed == nil {
		s.Passed = map[string]string{}
	}
	s.Passed[name] = value
}

// ResetPassed sets one of PassedOptions, or removes it if the value is "".
func (s *JobSpec) ResetPassed(name, value string) {
	s.Passed = maps.Clone(s.Passed)
	delete(s.Passed, name)
	if value != "" {
		s.SetPassed(name, value)
	}
}

// ForgetOnce removes the options that are about one start of the run, and lists them as the user
// would type them.
func (s *JobSpec) ForgetOnce() (forgotten []string) {
	s.Passed = maps.Clone(s.Passed)
	for _, o := range PassedOptions {
		if value, set := s.Passed[o.Name]; set && o.Once {
			forgotten = append(forgotten, "--"+o.Name+"="+value)
			delete(s.Passed, o.Name)
		}
	}
	return forgotten
}

// validatePassed refuses options that don't go together.
func (s JobSpec) validatePassed() error {
	var errs []error
	given := s.Mem != ""
	for _, name := range []string{"mem-per-cpu", "mem-per-gpu"} {
		if _, set := s.Passed[name]; set && given {
			errs = append(errs, fmt.Errorf("--%s=%s: give only one of --mem, --mem-per-cpu and --mem-per-gpu", name, s.Passed[name]))
		} else if set {
			given = true
		}
	}
	if _, set := s.Passed["mem-per-gpu"]; set && s.GPUs.Count == 0 {
		errs = append(errs, fmt.Errorf("--mem-per-gpu=%s: the job asks for no GPUs: add --gpus-per-node, or give --mem", s.Passed["mem-per-gpu"]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Passed)) {
		errs = append(errs, OneLine(name, s.Passed[name]))
	}
	return errors.Join(errs...)
}
