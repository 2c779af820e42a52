package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// filesIn lists the configuration files that exist: the user's own, then the project's, the first found upward from
// places.Start.
func filesIn(places Places) ([]string, error) {
	var list []string
	add := func(dir string) (bool, error) {
		path := filepath.Join(dir, FileName)
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		list = append(list, path)
		return true, err
	}
	if places.UserDir != "" {
		if _, err := add(places.UserDir); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(places.Start)
	if err != nil {
		return nil, err
	}
	for {
		found, err := add(dir)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if parent := filepath.Dir(dir); !found && parent != dir {
			dir = parent
			continue
		}
		return list, nil
	}
}

// readFile reads one configuration file.
func readFile(flags *pflag.FlagSet, path string) (layer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return layer{}, fmt.Errorf("configuration: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return layer{}, fmt.Errorf("%s: %w", path, err)
	}
	l := layer{place: path, entries: map[string]entry{}}
	if len(doc.Content) == 0 {
		return l, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return layer{}, fmt.Errorf("%s:%d: not a list of \"key: value\" lines", path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if err := l.add(flags, root.Content[i], root.Content[i+1]); err != nil {
			return layer{}, err
		}
	}
	return l, nil
}

// add puts one key of a file into l.
func (l layer) add(flags *pflag.FlagSet, key, value *yaml.Node) error {
	origin := fmt.Sprintf("%s:%d", l.place, key.Line)
	flag, err := lookup(flags, key.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	if earlier, twice := l.entries[key.Value]; twice {
		return fmt.Errorf("%s: key %q is there twice, first at %s", origin, key.Value, earlier.origin)
	}
	texts, err := textsOf(flag, value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", origin, key.Value, err)
	}
	if _, isPath := flag.Annotations[Path]; isPath {
		for i, text := range texts {
			texts[i] = absolute(filepath.Dir(l.place), text)
		}
	}
	l.entries[key.Value] = entry{texts: texts, origin: origin}
	return nil
}

func absolute(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// textsOf reads a value as flag wants it: the text of a scalar as it is written, or those of a list.
func textsOf(flag *pflag.Flag, value *yaml.Node) ([]string, error) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	_, wantsList := flag.Value.(pflag.SliceValue)
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return nil, fmt.Errorf("has no value; give %s, or leave the key out", Kind(flag))
	case value.Kind == yaml.ScalarNode:
		texts := []string{value.Value}
		return texts, check(flag, value.Value)
	case value.Kind == yaml.SequenceNode && wantsList:
		return items(flag, value.Content)
	}
	return nil, fmt.Errorf("%s is not %s", describe(value), Kind(flag))
}

func items(flag *pflag.Flag, nodes []*yaml.Node) ([]string, error) {
	texts := []string{}
	for _, item := range nodes {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return nil, fmt.Errorf("%s in the list is not a text", describe(item))
		}
		texts = append(texts, item.Value)
	}
	return texts, nil
}

func describe(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a map of keys"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", node.Value)
}

// check tells whether flag takes text, without changing the flag.
func check(flag *pflag.Flag, text string) error {
	if _, isList := flag.Value.(pflag.SliceValue); isList {
		return nil
	}
	old := flag.Value.String()
	err := set(flag, []string{text})
	if restore := flag.Value.Set(old); restore != nil {
		return restore
	}
	return err
}
