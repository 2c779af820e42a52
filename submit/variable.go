package submit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedNames maps variables that users may not set to who sets them.
var reservedNames = map[string]string{
	rundir.EnvDir: "submit", rundir.EnvCell: "submit", rundir.EnvRequeue: "submit", rundir.EnvRestarts: "submit", rundir.EnvStopped: "submit",
	rundir.EnvRecorder: "submit",
	"BASHOPTS":         "bash", "BASH_VERSINFO": "bash", "EUID": "bash", "PPID": "bash", "SHELLOPTS": "bash", "UID": "bash", "_": "bash",
}

// setter returns who sets a variable that users may not set; "" for all others.
func setter(name string) string {
	if strings.HasPrefix(name, rundir.EnvUserPrefix) {
		return "submit"
	}
	return cmp.Or(cluster.Setter(name), reservedNames[name])
}

// CheckEnv refuses variables that cannot be set or on which the ranks rely. origin is "--env" or
// "%env".
func CheckEnv(origin string, env map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch who := setter(name); {
		case !envName.MatchString(name):
			errs = append(errs, fmt.Errorf("%s=%q: %q is not the name of an environment variable; give NAME=VALUE with letters, digits and _ in NAME", origin, name+"="+env[name], name))
		case who != "":
			errs = append(errs, fmt.Errorf("%s %s: %s sets this variable itself, and the ranks rely on it; give the value to your programs under another name", origin, name, who))
		case strings.ContainsRune(env[name], 0):
			errs = append(errs, fmt.Errorf("%s %s: the value has a NUL byte", origin, name))
		}
	}
	return errors.Join(errs...)
}

// validateSecrets refuses names that cannot be passed. It never repeats a name that contains a
// value.
func (s JobSpec) validateSecrets() error {
	var errs []error
	for _, name := range s.Secrets {
		label, _, hasValue := strings.Cut(name, "=")
		_, twice := s.Env[name]
		switch who := setter(name); {
		case hasValue:
			errs = append(errs, fmt.Errorf("--secret %s=...: give the name only, which takes the value from your environment: export %s=... and --secret %s", label, label, label))
		case !envName.MatchString(name):
			errs = append(errs, fmt.Errorf("--secret=%q: not the name of an environment variable; give one with letters, digits and _", name))
		case who != "":
			errs = append(errs, fmt.Errorf("--secret %s: %s sets this variable itself, and the ranks rely on it; export the value under another name", name, who))
		case twice:
			errs = append(errs, fmt.Errorf("--secret %s: --env sets it too, which writes the value into the run directory; give one of them", name))
		}
	}
	return errors.Join(errs...)
}

// ParseEnv parses variables NAME=VALUE of --env.
func ParseEnv(list []string) (map[string]string, error) {
	env := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, Usagef("--env=%q: give NAME=VALUE", text)
		}
		env[name] = value
	}
	return env, nil
}

// CleanEnviron returns an environment for the commands of batch systems and MPI: environ without
// the variables of a job in which this process may run.
func CleanEnviron(environ []string) []string {
	return slices.DeleteFunc(cluster.Outside(environ), func(variable string) bool { return strings.HasPrefix(variable, rundir.EnvUserPrefix) })
}
