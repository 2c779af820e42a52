package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// envPrefix begins the names of environment variables that set a flag.
const envPrefix = "SUBMIT_"

// envName returns the environment variable of a flag: SUBMIT_TASKS_PER_NODE for --tasks-per-node.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnviron gives viper the SUBMIT_* variables. A value of the wrong type is an error, and so is
// a name that is one letter away from an option's. A name with more wrong letters gets only a
// warning, because other programs have SUBMIT_* variables too. An empty variable sets nothing.
func readEnviron(v *viper.Viper, flags *pflag.FlagSet, places Places) (warnings []string, err error) {
	byEnv := map[string]*pflag.Flag{}
	for _, f := range settable(flags) {
		byEnv[envName(f.Name)] = f
	}
	for _, variable := range places.Environ {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" {
			continue
		}
		if flag, known := byEnv[name]; known {
			if err := check(flag, value); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			v.Set(flag.Name, value)
			continue
		}
		if places.Some {
			continue
		}
		if flag := flags.Lookup(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))); flag != nil && flag.Name != "help" {
			warnings = append(warnings, fmt.Sprintf("%s is not used: only the command line can set --%s", name, flag.Name))
			continue
		}
		switch problem, certain := slip(flags, name); {
		case certain:
			return nil, errors.New(problem)
		case problem != "":
			warnings = append(warnings, problem)
		}
	}
	return warnings, nil
}

// slip describes a variable whose name is close to one of ours, and reports whether it is certainly
// a typo.
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
