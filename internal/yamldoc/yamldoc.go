// Package yamldoc checks that YAML is a single document. YAML readers take the first
// document and ignore the rest.
//
//	err := yamldoc.Single([]byte("nodes: 2\n---\nnodes: 4\n")) // line 2: a second document begins ...
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gonbatch/internal/nearest"
)

// Single refuses data that has more than one document, or that is not YAML.
func Single(text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for i := 0; ; i++ {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if i > 0 && len(doc.Content) > 0 && doc.Content[0].Tag != "!!null" {
			return fmt.Errorf("line %d: a second document begins after ---, and would be ignored: write one document", doc.Content[0].Line)
		}
	}
}

// Misspelled returns an error for the first key of a document that isn't one of the names, which
// says what may be meant; nil if there is none. The names of nested keys have dots:
// "checkpoint.keep". It explains the error of a reader that knows more, such as of merged mappings.
func Misspelled(text []byte, names []string) error {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	return misspelled(doc.Content[0], "", names)
}

func misspelled(node *yaml.Node, prefix string, names []string) error {
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		name := prefix + key.Value
		group, nested, dotted := strings.Cut(key.Value, ".")
		switch {
		case key.Tag == "!!merge":
		case dotted && slices.Contains(names, name):
			return fmt.Errorf("line %d: write %s as %s: {%s: ...}", key.Line, name, group, nested)
		case slices.Contains(names, name):
		case slices.ContainsFunc(names, func(known string) bool { return strings.HasPrefix(known, name+".") }):
			if err := misspelled(node.Content[i+1], name+".", names); err != nil {
				return err
			}
		default:
			meant := ""
			if near := nearest.Words(name, names); len(near) > 0 {
				meant = ": did you mean " + strings.Join(near, " or ") + "?"
			}
			return fmt.Errorf("line %d: there is no setting %s%s", key.Line, name, meant)
		}
	}
	return nil
}
