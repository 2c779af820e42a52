package corpus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Status is how a cell ended.
type Status string

// The ways in which a cell can end.
const (
	OK     Status = "ok"
	Failed Status = "error"
	NotRun Status = "not run"
)

// Cell is what one code cell did.
type Cell struct {
	// Number is the cell's position among all cells, from 1.
	Number int    `json:"number"`
	Status Status `json:"status"`
	// Code is the exit code of the program or command that failed; 0 if none did.
	Code   int    `json:"code,omitempty"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Error is the kernel's message about a cell that it could not run. It is recorded for readers,
	// but not compared.
	Error string `json:"error,omitempty"`
	// Rich are the kinds of what the cell shows besides text, such as "image/png text/html". The
	// corpus does not record it.
	Rich string `json:"rich,omitempty"`
}

// Observed is what a notebook did.
type Observed struct {
	Cells []Cell `json:"cells"`
	// Files are the files in the notebook's folder afterwards, without those that were there
	// before.
	Files map[string]string `json:"files,omitempty"`
}

// Deviation is where submit does something different from GoNB, and why. A nil field does not
// differ.
type Deviation struct {
	Cell   int     `json:"cell"`
	Status *Status `json:"status"`
	Code   *int    `json:"code"`
	Stdout *string `json:"stdout"`
	Stderr *string `json:"stderr"`
	// Files are the files that differ on submit's side; "" marks one that it does not have.
	Files  map[string]string `json:"files"`
	Reason string            `json:"reason"`
}

// Case is a notebook of the corpus.
type Case struct {
	// Name is the file's name without its extension, and Path is the file's path.
	Name, Path string
	// Title says what the notebook is for.
	Title string
	Meta
}

// Meta is the "corpus" metadata of a notebook.
type Meta struct {
	// Files are next to the notebook before it runs.
	Files map[string]string `json:"files"`
	// Modules means that the notebook imports modules other than the standard library.
	Modules bool `json:"modules"`
	// Refused is part of the message with which submit rejects the notebook; "" if submit runs it.
	Refused string `json:"refused"`
	// Message is part of what submit writes.
	Message string `json:"message"`
	// NoGoNB is why GoNB's side cannot be recorded.
	NoGoNB     string      `json:"no_gonb"`
	Deviations []Deviation `json:"deviations"`
}

// Load reads the notebooks in a folder, sorted by name.
func Load(dir string) ([]Case, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.ipynb"))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, path := range paths {
		c, err := loadCase(path)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func loadCase(path string) (Case, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Case{}, err
	}
	var notebook struct {
		Metadata struct {
			Title  string
			Corpus Meta
		}
	}
	if err := json.Unmarshal(data, &notebook); err != nil {
		return Case{}, fmt.Errorf("%s: %w", path, err)
	}
	m := notebook.Metadata
	if m.Title == "" {
		return Case{}, fmt.Errorf("%s: its metadata has no title: say what the notebook is for", path)
	}
	for _, d := range m.Corpus.Deviations {
		if d.Reason == "" {
			return Case{}, fmt.Errorf("%s: the deviation of cell %d has no reason", path, d.Cell)
		}
	}
	name := strings.TrimSuffix(filepath.Base(path), ".ipynb")
	return Case{Name: name, Path: path, Title: m.Title, Meta: m.Corpus}, nil
}

// golden returns the path of the file that records GoNB's side.
func (c Case) golden() string {
	return filepath.Join(filepath.Dir(c.Path), "golden", c.Name+".json")
}

// recorded reads what GoNB did.
func (c Case) recorded() (o Observed, err error) {
	data, err := os.ReadFile(c.golden())
	if err != nil {
		return o, fmt.Errorf("%w: record it with: go test ./tests/corpus -run 'Record/^%s$' -update", err, c.Name)
	}
	return o, json.Unmarshal(data, &o)
}

// stage copies the notebook, and the files next to it, to a folder.
func (c Case) stage(dir string) error {
	data, err := os.ReadFile(c.Path)
	if err != nil {
		return err
	}
	files := map[string]string{filepath.Base(c.Path): string(data)}
	for name, text := range c.Files {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
