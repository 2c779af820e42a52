package corpus

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// RulesFile is the file in a folder of notebooks that has their rules.
const RulesFile = "corpus.yaml"

// Rules say how the notebooks of a folder are compared. The zero value compares them as they are.
type Rules struct {
	// Replace changes the source of every cell on all sides, for example to shorten training.
	Replace []Replacement `yaml:"replace"`
	// Mask matches the parts of a cell's output that differ from run to run.
	Mask []Pattern `yaml:"mask"`
	// Prepend is the source of a cell that is added before the others in every notebook.
	Prepend string `yaml:"prepend"`
	// Limit is how long a cell may take.
	Limit time.Duration `yaml:"limit"`
	// Home maps names of links in the home folder to their targets, which may contain variables.
	Home map[string]string `yaml:"home"`
	// Env maps environment variables to values, in which ${HOME} is the home folder of the run.
	Env map[string]string `yaml:"env"`
	// Modules are downloaded first, as PATH@VERSION: a proxy may not list their versions.
	Modules []string `yaml:"modules"`
	// Exceptions are the cells that may differ.
	Exceptions []Exception `yaml:"exceptions"`
}

// Replacement replaces each match with a string, in which $1 is a submatch.
type Replacement struct {
	Find Pattern `yaml:"find"`
	With string  `yaml:"with"`
}

// Pattern is a regular expression.
type Pattern struct{ *regexp.Regexp }

// UnmarshalText compiles the expression.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	p.Regexp, err = regexp.Compile(string(text))
	return err
}

// Exception is a cell that is ok in GoNB, but not in the kernel or in a job.
type Exception struct {
	// Notebook is the path in the folder.
	Notebook string `yaml:"notebook"`
	// Cell counts from 1, without the cell that Rules.Prepend adds.
	Cell int `yaml:"cell"`
	// Side is Kernel or Job; "" means both.
	Side Side `yaml:"side"`
	// Output means that the cell runs but writes something else, or fails. A job rejects all other
	// cells with an exception.
	Output bool `yaml:"output"`
	// Sometimes means that the cell differs only in some runs.
	Sometimes bool   `yaml:"sometimes"`
	Reason    string `yaml:"reason"`
}

// Side is a way to run notebooks.
type Side string

// The sides that are compared with GoNB.
const (
	Kernel Side = "kernel"
	Job    Side = "job"
)

func (e Exception) is(notebook string, cell int, side Side) bool {
	return e.Notebook == notebook && e.Cell == cell && (e.Side == "" || e.Side == side)
}

// String names the exception.
func (e Exception) String() string {
	return fmt.Sprintf("%s, cell %d, %s (%s)", e.Notebook, e.Cell, cmp.Or(string(e.Side), "kernel and job"), e.Reason)
}

// ReadRules reads a file with rules. A missing file means no rules.
func ReadRules(path string) (rules Rules, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rules, nil
	}
	if err != nil {
		return rules, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		return rules, fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range rules.Exceptions {
		if e.Reason == "" {
			return rules, fmt.Errorf("%s: the exception of %s, cell %d, has no reason", path, e.Notebook, e.Cell)
		}
	}
	return rules, nil
}

// FindNotebooks returns the paths of the notebooks in a folder, relative to it, without those that
// Jupyter and submit wrote there.
func FindNotebooks(folder string) (names []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == runRoot):
			return filepath.SkipDir
		case filepath.Ext(path) == ".ipynb" && !entry.IsDir():
			names = append(names, name)
		}
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s: no notebook (*.ipynb) in this folder", folder)
	}
	return names, err
}
