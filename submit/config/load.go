package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"gonbatch/internal/userdir"
	"gonbatch/submit/report"
)

// fileName is the name of a configuration file.
const fileName = "submit.yaml"

// Places are the places that settings may come from.
type Places struct {
	// Start is the folder where the search for the project's file begins; it goes upward.
	Start string
	// UserDir is the folder of the user's own file; "" if there is none.
	UserDir string
	// Environ is the environment, in the form of os.Environ.
	Environ []string
	// Some is set by a command that has only some of the options: it ignores the others, and
	// mistakes in them.
	Some bool
}

// Config is the result of Load.
type Config struct {
	// Settings are all settings, sorted by key.
	Settings []report.Setting
	// Files are the configuration files that were read.
	Files []string
	// Warnings describe files and variables that were ignored although they may have been meant as
	// settings.
	Warnings []string
}

// Origin returns where the value of key comes from.
func (c *Config) Origin(key string) string {
	for _, s := range c.Settings {
		if s.Key == key {
			return s.Origin
		}
	}
	return ""
}

// Given returns the values of the options that somebody has set, by key.
func (c *Config) Given() map[string]any {
	given := map[string]any{}
	for _, s := range c.Settings {
		if s.Origin != Default {
			given[s.Key] = s.Value
		}
	}
	return given
}

// Default is the Origin of values that nobody set.
const Default = "default"

// Load sets the flags that the command line left out, and returns all settings with their origins.
// Viper holds the entries of the files and the environment, and decides which of them wins.
func Load(flags *pflag.FlagSet, places Places) (*Config, error) {
	found, err := findFiles(places)
	if err != nil {
		return nil, err
	}
	c := &Config{Warnings: found.warnings}
	d := &decoder{flags: flags, some: places.Some, origins: map[string]string{}}
	v := viper.NewWithOptions(viper.WithDecoderRegistry(d))
	v.SetConfigType("yaml")
	for _, f := range found.files { // The last one has priority.
		d.path, c.Files = f.path, append(c.Files, f.path)
		if err := v.MergeConfig(bytes.NewReader(f.data)); err != nil {
			return nil, errors.Unwrap(err) // The decoder's error says more than viper's.
		}
	}
	warnings, err := readEnviron(v, flags, places)
	if err != nil {
		return nil, err
	}
	c.Warnings = append(c.Warnings, warnings...)
	for _, flag := range settable(flags) {
		origin, err := apply(v, d.origins, flag)
		if err != nil {
			return nil, err
		}
		if err := expand(flag, places.Environ); err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		c.Settings = append(c.Settings, report.Setting{Key: flag.Name, Value: flag.Value.String(), Origin: origin})
	}
	return c, nil
}

// expand replaces ~ in the value of a flag that is a path: a shell has not, if the value comes from
// a file, or after a =.
func expand(flag *pflag.Flag, environ []string) error {
	path := flag.Value.String()
	if !IsMarked(flag, Path) || !inHome(path) {
		return nil
	}
	home, err := userdir.Home(func(name string) string {
		for _, variable := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(variable, name+"="); ok {
				return value
			}
		}
		return ""
	})
	if err != nil {
		return err
	}
	return set(flag, []string{home + path[1:]})
}

func inHome(path string) bool { return path == "~" || strings.HasPrefix(path, "~/") }

// apply sets flag to viper's value, unless the command line has set it, and returns the value's
// origin. A value from the environment is one text, with one list item a line; a value from a file
// comes from the decoder.
func apply(v *viper.Viper, origins map[string]string, flag *pflag.Flag) (string, error) {
	if flag.Changed {
		return commandLine(flag.Name), nil
	}
	switch value := v.Get(flag.Name).(type) {
	case string:
		texts := []string{value}
		if _, isList := flag.Value.(pflag.SliceValue); isList {
			texts = strings.Split(strings.TrimSuffix(value, "\n"), "\n")
		}
		return envName(flag.Name), set(flag, texts)
	case []string:
		return origins[flag.Name], set(flag, value)
	}
	return Default, nil
}

// set sets flag to the strings of an entry: all of them if it is a list, else the only one.
func set(flag *pflag.Flag, texts []string) error {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.Replace(texts)
	}
	return refusal(flag, texts[0], flag.Value.Set(texts[0]))
}

// refusal is the error of a flag that has refused a text; nil if err is.
func refusal(flag *pflag.Flag, text string, err error) error {
	own := ValueError{}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return fmt.Errorf("%q: %w", text, own)
	}
	return fmt.Errorf("%q is not %s", text, Kind(flag))
}

// Kind describes what a flag's value must be.
func Kind(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int":
		return "a whole number"
	case "duration":
		return "a time with its unit, such as 90s or 5m"
	case "bool":
		return "true or false"
	case "gpus":
		return "a number of GPUs, or TYPE:NUMBER, such as a100:2"
	case "stringArray":
		return "a list of strings"
	case "numbers":
		return "numbers, or leave it out"
	case "path":
		return "a path, or leave it out"
	case "name":
		return "a name, or leave it out"
	}
	return "a string"
}

// settable lists the flags that may be set here, sorted by name.
func settable(flags *pflag.FlagSet) []*pflag.Flag {
	var list []*pflag.Flag
	flags.VisitAll(func(f *pflag.Flag) {
		if !IsMarked(f, FlagOnly) && f.Name != "help" {
			list = append(list, f)
		}
	})
	slices.SortFunc(list, func(a, b *pflag.Flag) int { return strings.Compare(a.Name, b.Name) })
	return list
}
