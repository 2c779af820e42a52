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

	"go.yaml.in/yaml/v3"
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
