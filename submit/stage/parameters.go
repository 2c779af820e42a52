package stage

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"gonbatch/internal/yamldoc"
	"gonbatch/submit"
)

// parameters reads the values of a notebook's parameters: from a YAML file, "" for none, and from
// strings NAME=VALUE, which take precedence. places are the places of the file's values.
func parameters(file string, texts []string) (values, places map[string]string, err error) {
	values, places = map[string]string{}, map[string]string{}
	if file != "" {
		if err := CheckParametersFile(file); err != nil {
			return nil, nil, err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, fmt.Errorf("--params-file: %w", err)
		}
		var lines map[string]int
		if values, lines, err = parseParams(data); err != nil {
			return nil, nil, fmt.Errorf("--params-file=%s: %w", file, err)
		}
		for name, line := range lines {
			places[name] = fmt.Sprintf("%s, line %d", file, line)
		}
	}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, nil, submit.Usagef("-p %q: give NAME=VALUE, as in -p epochs=3", text)
		}
		values[name] = value
		delete(places, name)
	}
	return values, places, nil
}

// CheckParametersFile refuses a notebook as the parameters file: its user meant to follow a job
// with -f, as in "submit logs".
func CheckParametersFile(file string) error {
	if filepath.Ext(file) != ".ipynb" {
		return nil
	}
	return submit.Usagef("-f %s: that is a notebook, and -f is --params-file, a YAML file of parameters; to follow the job, use -F", file)
}

// parseParams reads a YAML mapping of names to plain values. It returns the values as written, and
// the line of each.
func parseParams(data []byte) (values map[string]string, lines map[string]int, err error) {
	values, lines = map[string]string{}, map[string]int{}
	var doc yaml.Node
	if err := cmp.Or(yamldoc.Single(data), yaml.Unmarshal(data, &doc)); err != nil {
		return nil, nil, err
	}
	if len(doc.Content) == 0 {
		return values, lines, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, nil, errors.New("give one line NAME: VALUE for each parameter")
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		text, err := textOf(value)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %s: %w", name.Line, name.Value, err)
		}
		if _, twice := values[name.Value]; twice {
			return nil, nil, fmt.Errorf("line %d: %s is set twice", name.Line, name.Value)
		}
		values[name.Value], lines[name.Value] = text, name.Line
	}
	return values, lines, nil
}

// textOf returns a value as -p takes it: a list as [1, 2], a map as {a: 1}.
func textOf(value *yaml.Node) (string, error) {
	switch {
	case value.Kind == yaml.SequenceNode || value.Kind == yaml.MappingNode:
		value.Style = yaml.FlowStyle
		text, err := yaml.Marshal(value)
		return strings.TrimSpace(string(text)), err
	case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
		return "", errors.New("give a number, a string, a boolean, a list or a map")
	}
	return value.Value, nil
}
