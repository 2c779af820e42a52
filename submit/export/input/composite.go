package input

import (
	"errors"
	"fmt"
	"go/types"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"gonbatch/internal/yamldoc"
)

// isComposite reports whether a type is that of a list, or of a map with strings as keys.
func isComposite(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return true
	case *types.Map:
		key, ok := u.Key().Underlying().(*types.Basic)
		return ok && key.Info()&types.IsString != 0
	}
	return false
}

// compositeLiteral returns the Go literal for a list or a map that is written as in YAML or JSON:
// [3, 4] or {a: 1}.
func compositeLiteral(t types.Type, text string) (string, error) {
	var doc yaml.Node
	if yamldoc.Single([]byte(text)) != nil || yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) != 1 {
		return "", wrongComposite(t)
	}
	return nodeLiteral(t, doc.Content[0])
}

func wrongComposite(t types.Type) error {
	example := "[1, 2]"
	if _, ok := t.Underlying().(*types.Map); ok {
		example = "{a: 1, b: 2}"
	}
	return fmt.Errorf("its type is %s; give one such as %s", typeName(t), example)
}

// nodeLiteral returns the Go literal for a value of a type.
func nodeLiteral(t types.Type, node *yaml.Node) (string, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	var parts []string
	switch u := t.Underlying().(type) {
	case *types.Slice:
		if node.Kind != yaml.SequenceNode {
			return "", wrongComposite(t)
		}
		for i, element := range node.Content {
			literal, err := nodeLiteral(u.Elem(), element)
			if err != nil {
				return "", fmt.Errorf("element %d: %w", i+1, err)
			}
			parts = append(parts, literal)
		}
	case *types.Map:
		if node.Kind != yaml.MappingNode {
			return "", wrongComposite(t)
		}
		known := map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key := node.Content[i].Value; known[key] {
				return "", fmt.Errorf("%s is there twice", key)
			}
			known[node.Content[i].Value] = true
			literal, err := nodeLiteral(u.Elem(), node.Content[i+1])
			if err != nil {
				return "", fmt.Errorf("%s: %w", node.Content[i].Value, err)
			}
			parts = append(parts, strconv.Quote(node.Content[i].Value)+": "+literal)
		}
	case *types.Basic:
		if u.Kind() == types.Invalid {
			return "", errors.New("only lists and maps of numbers, strings and booleans can be set")
		}
		if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
			return "", fmt.Errorf("its type is %s", typeName(t))
		}
		literal, err := kind{name: typeName(t), basic: u}.plainLiteral(node.Value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", node.Value, err)
		}
		return literal, nil
	default:
		return "", errors.New("only lists and maps of numbers, strings and booleans can be set")
	}
	return typeName(t) + "{" + strings.Join(parts, ", ") + "}", nil
}

// typeName returns a type as written in source.
func typeName(t types.Type) string {
	return types.TypeString(t, func(*types.Package) string { return "" })
}
