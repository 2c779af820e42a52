package export

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export/gomod"
)

// program holds the parts of a program's source.
type program struct {
	made rundir.Cell
	cell *cellInfo
	// cells are all cells of the notebook.
	cells []*cellInfo
	// decls are its declarations in GoNB's order, and main is its main.
	decls []*decl
	main  *decl
	// imports are the cells' imports.
	imports []*importDecl
	// script is set for a program as one file, without positions.
	script bool
}

// render returns the program's source, its imports, and open: the names whose imports are missing.
// found has imports for names that no cell imports.
func (p program) render(names *gomod.Names, found map[string]string) (text []byte, imports []importLine, open []string, err error) {
	body, ordered, err := p.body()
	if err != nil {
		return nil, nil, nil, err
	}
	body = p.saveOnExit(body)
	imports, open, err = chooseImports(p.imports, body, names, found)
	if err != nil {
		return nil, nil, nil, p.cell.errorf(0, "the cells do not fit together: %v", err)
	}
	imports = slices.Concat(imports, keepImports(imports), embedImports(body, imports))
	head, err := p.head(imports, !ordered)
	if err != nil {
		return nil, nil, nil, p.cell.errorf(0, "the imports cannot be formatted: %v", err)
	}
	return append(head, body...), imports, open, nil
}

// logs reports whether a program uses package log.
func logs(imports []importLine) bool {
	return slices.ContainsFunc(imports, func(l importLine) bool { return l.path == "log" && l.name != "_" && l.name != "." })
}

// logFile returns the name of gocell's file for package log, as a test file if the cell runs tests:
// such a program has only test files.
func logFile(cell rundir.Cell) string {
	if cell.Test {
		return strings.TrimSuffix(gocell.LogFile, ".go") + "_test.go"
	}
	return gocell.LogFile
}

// body returns everything below the imports. ordered is set if it is in the notebook's order and
// includes the Markdown.
func (p program) body() (text string, ordered bool, err error) {
	decls, ordered := inNotebookOrder(p.decls, p.made.Test)
	var body strings.Builder
	told := 0 // The Markdown up to this cell has been written.
	for _, d := range append(decls[:len(decls):len(decls)], p.main) {
		if ordered {
			body.WriteString(p.markdown(told, d.cell.Number))
			told = max(told, d.cell.Number)
		}
		text, err := d.render(!p.script)
		if err != nil {
			return "", false, err
		}
		body.WriteString("\n")
		body.WriteString(text)
	}
	return body.String(), ordered, nil
}

// head returns the program's comment, with the Markdown above its main if markdown is set, the
// package clause and the imports. gofmt may need two passes over the comment.
func (p program) head(imports []importLine, markdown bool) ([]byte, error) {
	var out strings.Builder
	if p.script {
		out.WriteString(p.howToRun())
	} else {
		fmt.Fprintf(&out, generatedLine+"%s; DO NOT EDIT.\n\n", p.cell.ref.Notebook)
	}
	fmt.Fprintf(&out, "// Command %s is cell %s of %s.\n", p.made.Name, p.cell.Label(), p.cell.ref.Notebook)
	if markdown {
		out.WriteString(p.docComment())
	}
	out.WriteString("package main\n" + renderImports(imports))
	head := []byte(out.String())
	for range 3 {
		formatted, err := format.Source(head)
		if err != nil || bytes.Equal(formatted, head) {
			return formatted, err
		}
		head = formatted
	}
	return head, nil
}

// docComment returns the Markdown directly above the main cell, as part of the program's comment.
func (p program) docComment() string {
	above := 0
	for _, cell := range p.cells {
		if cell.Number < p.cell.Number && cell.Type != nbformat.Markdown {
			above = cell.Number
		}
	}
	text := ""
	for _, cell := range p.cells {
		if cell.Type == nbformat.Markdown && cell.Number > above && cell.Number < p.cell.Number {
			text += "//\n" + markdownComment(cell.Source)
		}
	}
	return text
}

// markdown returns the Markdown cells between two cells, each as its own comment. A program that is
// not a script leaves out the Markdown above cells that it doesn't use.
func (p program) markdown(after, before int) string {
	text, section := "", ""
	inSection := false // A cell with code has followed the section's Markdown.
	for _, cell := range p.cells {
		if cell.Number <= after || cell.Number >= before {
			continue
		}
		if cell.Type != nbformat.Markdown {
			inSection = inSection || cell.Type == nbformat.Code
			continue
		}
		if inSection {
			if p.script {
				text += section
			}
			section, inSection = "", false
		}
		section += "\n" + markdownComment(cell.Source)
	}
	return text + section
}

// commentWidth is the length at which lines of Markdown are cut: they may contain whole images.
const commentWidth = 300

// headingMark begins a heading; Go's comments have a single #.
const headingMark = "#"

// markdownComment returns a Markdown text as comment lines.
func markdownComment(source string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(strings.ReplaceAll(source, "\r\n", "\n"))) {
		line = printable(strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \n"))
		if m := headingLine.FindStringSubmatch(line); m != nil && m[1] != "" {
			line = headingMark + " " + m[1]
		}
		if rest := strings.TrimSpace(line); strings.HasPrefix(rest, "+build") {
			line = `\` + rest // Otherwise Go takes it for a constraint. Markdown ignores the backslash.
		}
		if runes := []rune(line); len(runes) > commentWidth {
			line = string(runes[:commentWidth-3]) + "..."
		}
		if line == "" {
			b.WriteString("//\n")
			continue
		}
		b.WriteString("// " + line + "\n")
	}
	return b.String()
}

// renderImports returns the import declarations: the standard library, all others, and cgo with its
// preamble.
func renderImports(imports []importLine) string {
	var std, other, cgo strings.Builder
	for _, imp := range imports {
		switch {
		case imp.path == "C":
			cgo.WriteString("\n" + imp.doc + "import \"C\"\n")
		case gocell.IsStandard(imp.path):
			std.WriteString(imp.String())
		default:
			other.WriteString(imp.String())
		}
	}
	if std.Len()+other.Len() == 0 {
		return cgo.String()
	}
	gap := ""
	if std.Len() > 0 && other.Len() > 0 {
		gap = "\n"
	}
	return "\nimport (\n" + std.String() + gap + other.String() + ")\n" + cgo.String()
}

// String returns the import's line in an import block.
func (l importLine) String() string {
	if l.name == "" {
		return fmt.Sprintf("\t%q\n", l.path)
	}
	return fmt.Sprintf("\t%s %q\n", l.name, l.path)
}
