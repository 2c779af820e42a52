package config

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"gonbatch/internal/yamldoc"
)

// decoder reads the YAML of a submit.yaml for viper. Viper's own decoder turns strings into numbers
// and times ("010" becomes 8), and knows neither line numbers nor the valid keys: see
// docs/adr/0011-viper-reads-the-options-by-a-decoder-of-ours.md.
type decoder struct {
	flags *pflag.FlagSet
	// some makes the decoder skip keys that are not flags.
	some bool
	// path is the current file.
	path string
	// origins are the file and line of each key, from the last file that has it.
	origins map[string]string
}

// Decoder returns the decoder itself: there is one format.
func (d *decoder) Decoder(string) (viper.Decoder, error) { return d, nil }

// Decode maps each key to the strings of its value as written: one string, or a list's items.
func (d *decoder) Decode(data []byte, into map[string]any) error {
	var doc yaml.Node
	if err := cmp.Or(yamldoc.Single(data), yaml.Unmarshal(data, &doc)); err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: not a list of \"key: value\" lines", d.path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if d.some && d.flags.Lookup(key.Value) == nil {
			continue
		}
		if err := d.add(into, key, value); err != nil {
			return err
		}
	}
	return nil
}

// add decodes one key.
func (d *decoder) add(into map[string]any, key, value *yaml.Node) error {
	origin := fmt.Sprintf("%s:%d", d.path, key.Line)
	flag, err := lookup(d.flags, key.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	if _, twice := into[flag.Name]; twice {
		return fmt.Errorf("%s: key %q is set twice, first at %s", origin, key.Value, d.origins[flag.Name])
	}
	texts, err := textsOf(flag, value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", origin, key.Value, err)
	}
	if IsMarked(flag, Path) {
		for i, text := range texts {
			texts[i] = absolute(filepath.Dir(d.path), text)
		}
	}
	into[flag.Name], d.origins[flag.Name] = texts, origin
	return nil
}

func absolute(dir, path string) string {
	if path == "" || filepath.IsAbs(path) || inHome(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// textsOf returns the strings of a flag's value: a scalar as written, or the strings of a list's
// items.
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

// check returns an error if flag does not accept text; it doesn't change the flag.
func check(flag *pflag.Flag, text string) error {
	switch value := flag.Value.(type) {
	case pflag.SliceValue:
		return nil
	case Checker:
		return refusal(flag, text, value.Check(text))
	}
	old := flag.Value.String()
	err := set(flag, []string{text})
	if restore := flag.Value.Set(old); restore != nil {
		return restore
	}
	return err
}
