package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// file is a configuration file that was read.
type file struct {
	path string
	data []byte
}

// search collects configuration files.
type search struct {
	self     int
	files    []file
	warnings []string
}

// add reads the file of a folder, if there is one that may be used.
func (s *search) add(dir string) (found bool, err error) {
	path := filepath.Join(dir, FileName)
	data, why, err := readTrusted(path, s.self)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("configuration: %w", err)
	case why != "":
		s.warnings = append(s.warnings, fmt.Sprintf("%s is not used: %s", path, why))
		return false, nil
	}
	s.files = append(s.files, file{path, data})
	return true, nil
}

// findFiles reads the configuration files: the user's own, then the project's, the first found
// upward from places.Start. One that another user could have written is passed over, with a
// warning.
func findFiles(places Places) (s search, err error) {
	s.self = os.Geteuid()
	if places.UserDir != "" {
		if _, err := s.add(places.UserDir); err != nil {
			return s, err
		}
	}
	dir, err := filepath.Abs(places.Start)
	if err != nil {
		return s, err
	}
	for {
		found, err := s.add(dir)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return s, err
		}
		if parent := filepath.Dir(dir); !found && parent != dir {
			dir = parent
			continue
		}
		return s, nil
	}
}

// parse reads the text of f. With some, keys that are no flags are passed over.
func (f file) parse(flags *pflag.FlagSet, some bool) (layer, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(f.data, &doc); err != nil {
		return layer{}, fmt.Errorf("%s: %w", f.path, err)
	}
	l := layer{place: f.path, entries: map[string]entry{}}
	if len(doc.Content) == 0 {
		return l, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return layer{}, fmt.Errorf("%s:%d: not a list of \"key: value\" lines", f.path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if some && flags.Lookup(key.Value) == nil {
			continue
		}
		if err := l.add(flags, key, value); err != nil {
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
			return nil, fmt.Errorf("%s in the list is not a string", describe(item))
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
