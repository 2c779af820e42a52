package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Config are the effective options.
type Config struct {
	Settings []Setting `json:"settings"`
	// Files are the configuration files that were read.
	Files []string `json:"files"`
}

// Setting is the value of an option, and where it comes from: "default", "flag --nodes",
// "SUBMIT_NODES", or a file and line.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Text writes the options in the form of a submit.yaml.
func (c Config) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range c.Settings {
		fmt.Fprintf(table, "%s:\t%s\t# %s\n", s.Key, s.Value, s.Origin)
	}
	return table.Flush()
}
