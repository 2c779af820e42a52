package config

import (
	"fmt"
	"regexp"
	"strings"
)

// An error about options has lines that begin with one. Other lines may quote a job's log.
var (
	aboutOptions = regexp.MustCompile(`(?m)^--.*`)
	option       = regexp.MustCompile(`--([a-z][a-z-]*)=`)
)

// Explain adds to an error where the options that it names with their values were set, if that was
// not on the command line: the user may have forgotten the line of a file.
func (c *Config) Explain(err error) error {
	if err == nil {
		return nil
	}
	var places []string
	seen := map[string]bool{}
	lines := strings.Join(aboutOptions.FindAllString(err.Error(), -1), "\n")
	for _, found := range option.FindAllStringSubmatch(lines, -1) {
		name := found[1]
		switch origin := c.Origin(name); origin {
		case "", Default, commandLine(name):
		default:
			if !seen[name] {
				places = append(places, fmt.Sprintf("%s is set by %s", name, origin))
			}
			seen[name] = true
		}
	}
	if len(places) == 0 {
		return err
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(places, "\n"))
}

// commandLine is the origin of an option that the command line sets.
func commandLine(name string) string { return "flag --" + name }
