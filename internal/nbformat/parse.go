package nbformat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse parses a notebook of nbformat 4, of any minor version: these only add fields, and unknown
// fields are kept. The name appears in error messages and becomes the notebook's Path.
func Parse(name string, data []byte) (*Notebook, error) {
	if err := checkEncoding(data); err != nil {
		return nil, fmt.Errorf("notebook %s: %w", name, err)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("notebook %s: the file is empty", name)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("notebook %s: %w", name, jsonError(data, err))
	}
	nb := &Notebook{Path: name, fields: fields}
	if err := nb.decode(); err != nil {
		return nil, fmt.Errorf("notebook %s: %w", name, err)
	}
	return nb, nil
}

// checkEncoding refuses UTF-16, which editors on Windows write, and Latin-1 and the like, of which
// the letters would be lost.
func checkEncoding(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.IndexByte(data[:min(2, len(data))], 0) >= 0 {
		return errors.New("the file is UTF-16; save it as UTF-8, for example with: iconv -f UTF-16 -t UTF-8")
	}
	if !utf8.Valid(data) {
		at := 0
		for r, size := utf8.DecodeRune(data); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRune(data[at:]) {
			at += size
		}
		line, col := position(data, int64(at)+1)
		return fmt.Errorf("line %d, column %d: the file isn't UTF-8 (byte 0x%x); if it is Latin-1, convert it with: iconv -f LATIN1 -t UTF-8", line, col, data[at])
	}
	return nil
}

// decode fills the notebook from its fields.
func (nb *Notebook) decode() error {
	if err := nb.decodeVersion(); err != nil {
		return err
	}
	language, err := nb.language()
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"", "go", "golang"}, language) {
		return fmt.Errorf("the notebook is in %s, and only Go notebooks can be used; choose a Go kernel for it", language)
	}
	if err := nb.decodeCells(); err != nil {
		return err
	}
	return nb.decodeOrigin()
}

// decodeVersion reads and checks nbformat and nbformat_minor.
func (nb *Notebook) decodeVersion() error {
	raw, ok := nb.fields["nbformat"]
	if !ok {
		return errors.New("not a notebook: it has no nbformat field")
	}
	if err := json.Unmarshal(raw, &nb.Major); err != nil {
		return fmt.Errorf("nbformat is %s, want the number 4", raw)
	}
	if raw, ok := nb.fields["nbformat_minor"]; ok {
		if err := json.Unmarshal(raw, &nb.Minor); err != nil {
			return fmt.Errorf("nbformat_minor is %s, want a number", raw)
		}
	}
	switch {
	case nb.Major < 4:
		return fmt.Errorf("nbformat %d is too old, want 4; convert it with: jupyter nbconvert --to notebook --nbformat 4 NOTEBOOK", nb.Major)
	case nb.Major > 4:
		return fmt.Errorf("nbformat %d is newer than 4, the newest that gonbatch reads; save it as nbformat 4", nb.Major)
	}
	return nil
}

// kernelLanguages maps kernels whose notebooks often lack kernelspec.language to their languages.
var kernelLanguages = map[string]string{
	"gonb": "go", "gophernotes": "go", "gonbatch": "go",
	"python3": "python", "python2": "python", "ir": "r",
}

// language returns the notebook's programming language in lower case ("go", "python"), or "" if the
// notebook does not say. The kernelspec's language takes precedence, because language_info is
// written by the kernel that ran last.
func (nb *Notebook) language() (string, error) {
	raw, ok := nb.fields["metadata"]
	if !ok {
		return "", nil
	}
	type metadata struct {
		Kernelspec struct {
			Name     string `json:"name"`
			Language string `json:"language"`
		} `json:"kernelspec"`
		LanguageInfo struct {
			Name string `json:"name"`
		} `json:"language_info"`
	}
	var m metadata
	if err := json.Unmarshal(raw, &m); err != nil {
		return "", fmt.Errorf("metadata: %w", err)
	}
	return strings.ToLower(cmp.Or(m.Kernelspec.Language, m.LanguageInfo.Name, kernelLanguages[m.Kernelspec.Name])), nil
}

// decodeCells reads the cells.
func (nb *Notebook) decodeCells() error {
	var raws []json.RawMessage
	if raw, ok := nb.fields["cells"]; ok {
		if err := json.Unmarshal(raw, &raws); err != nil {
			return fmt.Errorf("cells: %w", err)
		}
	}
	if len(raws) == 0 {
		return errors.New("the notebook has no cells")
	}
	for i, raw := range raws {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return fmt.Errorf("cell %d: %w", i+1, err)
		}
		cell, err := decodeCell(fields)
		if err != nil {
			return fmt.Errorf("cell %d: %w", i+1, err)
		}
		cell.Number = i + 1
		nb.Cells = append(nb.Cells, cell)
	}
	return nil
}

// decodeCell reads one cell.
func decodeCell(fields map[string]json.RawMessage) (*Cell, error) {
	c := &Cell{fields: fields}
	if err := json.Unmarshal(fields["cell_type"], &c.Type); err != nil || c.Type == "" {
		return nil, fmt.Errorf("cell_type is %q, want code, markdown or raw", fields["cell_type"])
	}
	if raw, ok := fields["id"]; ok {
		if err := json.Unmarshal(raw, &c.ID); err != nil {
			return nil, fmt.Errorf("id is %s, want a string", raw)
		}
	}
	var err error
	if c.Source, err = decodeSource(fields["source"]); err != nil {
		return nil, err
	}
	if c.Tags, err = decodeTags(fields["metadata"]); err != nil {
		return nil, err
	}
	return c, nil
}

// decodeTags reads the tags in a cell's metadata, which may be missing.
func decodeTags(raw json.RawMessage) (tags []string, err error) {
	var metadata struct{ Tags json.RawMessage }
	if raw == nil {
		return nil, nil
	}
	if json.Unmarshal(raw, &metadata) != nil {
		return nil, fmt.Errorf("metadata is %s, want an object", raw)
	}
	if metadata.Tags != nil && json.Unmarshal(metadata.Tags, &tags) != nil {
		return nil, fmt.Errorf("metadata.tags is %s, want a list of strings, such as [\"train\"]", metadata.Tags)
	}
	return tags, nil
}

// decodeSource reads a multi-line string, which is a string or a list of strings.
func decodeSource(raw json.RawMessage) (text string, err error) {
	if raw == nil || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var lines []string
	if json.Unmarshal(raw, &lines) != nil {
		return "", errors.New("source is neither a string nor a list of strings")
	}
	return strings.Join(lines, ""), nil
}

// jsonError says where in data the JSON is wrong.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line, col := position(data, syntax.Offset)
		return fmt.Errorf("not JSON: line %d, column %d: %w", line, col, err)
	case errors.As(err, &kind):
		return fmt.Errorf("not a notebook: the file holds a JSON %s, want an object", kind.Value)
	}
	return err
}

// position returns the line and column, from 1, of the byte that ends at offset.
func position(data []byte, offset int64) (line, col int) {
	before := data[:max(0, min(int(offset)-1, len(data)))]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}
