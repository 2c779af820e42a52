package stage

import (
	"cmp"
	"errors"
	"fmt"
	"gonbatch/internal/yamldoc"
	"gonbatch/submit"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parameters reads the values of a notebook's parameters: those of a YAML file, "" for none, and
// texts NAME=VALUE, which win.
func Parameters(file string, texts []string) (map[string]string, error) {
	values := map[string]string{}
	if file != "" {
		if err := CheckParametersFile(file); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--params-file: %w", err)
		}
		if values, err = parseParams(data); err != nil {
			return nil, fmt.Errorf("--params-file=%s: %w", file, err)
		}
	}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, submit.Usagef("-p %q: give NAME=VALUE, as in -p epochs=3", text)
		}
		values[name] = value
	}
	return values, nil
}

// CheckParametersFile finds users who want to follow a job by -f, as with "submit logs".
func CheckParametersFile(file string) error {
	if filepath.Ext(file) != ".ipynb" {
		return nil
	}
	return submit.Usagef("-f %s: that is a notebook, and -f is --params-file, a YAML file of parameters; to follow the job, use -F", file)
}

// parseParams reads a YAML mapping of names to plain values, which stay as they are written.
func parseParams(data []byte) (map[string]string, error) {
	values := map[string]string{}
	var doc yaml.Node
	if err := cmp.Or(yamldoc.Single(data), yaml.Unmarshal(data, &doc)); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return values, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("give one line NAME: VALUE for each parameter")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
			return nil, fmt.Errorf("line %d: %s: give one number, string or boolean", name.Line, name.Value)
		}
		if _, twice := values[name.Value]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", name.Line, name.Value)
		}
		values[name.Value] = value.Value
	}
	return values, nil
}
