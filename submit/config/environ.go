package config

import (
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

// readEnviron reads the SUBMIT_* variables. A list has one item a line. An empty variable sets nothing. One that is no
// key is an error if it looks like a slip; other programs have SUBMIT_* variables too.
func readEnviron(flags *pflag.FlagSet, environ []string) (layer, error) {
	l := layer{place: "environment", entries: map[string]entry{}}
	byEnv := map[string]*pflag.Flag{}
	for _, f := range settable(flags) {
		byEnv[envName(f.Name)] = f
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" {
			continue
		}
		flag, known := byEnv[name]
		if !known {
			if err := slip(flags, name); err != nil {
				return layer{}, err
			}
			continue
		}
		if err := check(flag, value); err != nil {
			return layer{}, fmt.Errorf("%s: %w", name, err)
		}
		l.entries[flag.Name] = entry{texts: texts(flag, value), origin: name}
	}
	return l, nil
}

func texts(flag *pflag.Flag, value string) []string {
	if _, isList := flag.Value.(pflag.SliceValue); isList {
		return strings.Split(strings.TrimSuffix(value, "\n"), "\n")
	}
	return []string{value}
}

// slip tells of a variable that is nearly one of ours.
func slip(flags *pflag.FlagSet, name string) error {
	near := nearest(strings.TrimPrefix(name, envPrefix), settable(flags))
	if len(near) == 0 {
		return nil
	}
	for i, key := range near {
		near[i] = envName(strings.Trim(key, `"`))
	}
	return fmt.Errorf("unknown variable %s: did you mean %s?", name, strings.Join(near, " or "))
}
