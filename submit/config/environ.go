package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// envPrefix begins the names of environment variables that set a flag.
const envPrefix = "SUBMIT_"

// envName is the environment variable of a flag: SUBMIT_TASKS_PER_NODE for --tasks-per-node.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnviron reads the SUBMIT_* variables. A list has one item a line. An empty variable sets
// nothing. One that is one letter away from an option is an error, and one that is near gives a
// warning: other programs have SUBMIT_* variables too.
func readEnviron(flags *pflag.FlagSet, places Places) (l layer, warnings []string, err error) {
	l = layer{place: "environment", entries: map[string]entry{}}
	byEnv := map[string]*pflag.Flag{}
	for _, f := range settable(flags) {
		byEnv[envName(f.Name)] = f
	}
	for _, variable := range places.Environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" {
			continue
		}
		flag, known := byEnv[name]
		if !known {
			if places.Some {
				continue
			}
			switch problem, certain := slip(flags, name); {
			case certain:
				return layer{}, nil, errors.New(problem)
			case problem != "":
				warnings = append(warnings, problem)
			}
			continue
		}
		if err := check(flag, value); err != nil {
			return layer{}, nil, fmt.Errorf("%s: %w", name, err)
		}
		l.entries[flag.Name] = entry{texts: texts(flag, value), origin: name}
	}
	return l, warnings, nil
}

func texts(flag *pflag.Flag, value string) []string {
	if _, isList := flag.Value.(pflag.SliceValue); isList {
		return strings.Split(strings.TrimSuffix(value, "\n"), "\n")
	}
	return []string{value}
}

// slip describes a variable that is nearly one of ours, and reports whether it certainly was meant
// to be one.
func slip(flags *pflag.FlagSet, name string) (problem string, certain bool) {
	key := strings.TrimPrefix(name, envPrefix)
	near := nearest(key, settable(flags))
	if len(near) == 0 {
		return "", false
	}
	certain = distance(key, strings.Trim(near[0], `"`)) == 1
	for i, key := range near {
		near[i] = envName(strings.Trim(key, `"`))
	}
	return fmt.Sprintf("unknown variable %s: did you mean %s?", name, strings.Join(near, " or ")), certain
}
