package assist

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// compose returns the two files that gopls sees: the cell with the session's imports, and the rest
// of the last program that the session built, without its main and without what the cell declares
// again.
func compose(code, built string) (doc *document, session string) {
	doc = &document{code: code, text: gocell.Parse(code).File().Text()}
	if offset := gocell.BareStart(doc.text); offset >= 0 {
		const opening = "func _() { "
		before := doc.text[:offset]
		doc.insertedLine, doc.insertedLength = strings.Count(before, "\n"), len(opening)
		doc.insertedAt = len(before) - strings.LastIndex(before, "\n") - 1
		doc.text = before + opening + doc.text[offset:] + "\n}\n"
	}
	cellTree, _ := parser.ParseFile(token.NewFileSet(), "", doc.text, parser.SkipObjectResolution)
	positions := token.NewFileSet()
	sessionTree, _ := parser.ParseFile(positions, "", built, parser.SkipObjectResolution)
	imports := missingImports(doc.text, cellTree, sessionTree)
	doc.text = "package main; import (" + strings.Join(imports, "; ") + ")" + strings.TrimPrefix(doc.text, "package main")
	return doc, remaining(built, positions, sessionTree, cellTree)
}

// selector matches the use of a package's name.
var selector = regexp.MustCompile(`(?:^|[^\w.)\]"])([a-z]\w*)\.`)

// missingImports returns the imports that a cell needs: the session's, and the packages of the
// standard library that the cell seems to use. The kernel's goimports would add the same when the
// cell runs.
func missingImports(text string, cellTree, sessionTree *ast.File) []string {
	known := declared(cellTree)
	maps.Copy(known, declared(sessionTree))
	for _, spec := range cellTree.Imports {
		known[importName(spec)] = true
	}
	var missing []string
	add := func(name, spec string) {
		if !known[name] {
			known[name] = true
			missing = append(missing, spec)
		}
	}
	for _, spec := range sessionTree.Imports {
		text := spec.Path.Value
		if spec.Name != nil {
			text = spec.Name.Name + " " + text
		}
		if name := importName(spec); name != "." && name != "_" {
			add(name, text)
		}
	}
	for _, match := range selector.FindAllStringSubmatch(text, -1) {
		if path := gocell.StandardPackage(match[1], nil); path != "" {
			add(match[1], fmt.Sprintf("%q", path))
		}
	}
	return missing
}

// importText lists the imports of a Go file.
func importText(name string) string {
	tree, _ := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if tree == nil { // The file can't be read.
		return ""
	}
	var text strings.Builder
	for _, spec := range tree.Imports {
		text.WriteString(spec.Path.Value + "\n")
	}
	return text.String()
}

// importName returns the name by which a file knows an import. It is a guess if the package's name
// differs from its path.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return gocell.AssumedName(strings.Trim(spec.Path.Value, "\"`"))
}

// declared returns the names that a file declares, methods as Type~Method.
func declared(tree *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, decl := range tree.Decls {
		for _, name := range gocell.Declared(decl) {
			names[name] = true
		}
	}
	return names
}

// remaining returns the session's program without its main and without the declarations that the
// cell replaces.
func remaining(built string, positions *token.FileSet, sessionTree, cellTree *ast.File) string {
	if built == "" {
		return "package main\n"
	}
	replaced := declared(cellTree)
	replaced["main"] = true
	text := []byte(built)
	for _, decl := range sessionTree.Decls {
		if slices.ContainsFunc(gocell.Declared(decl), func(name string) bool { return replaced[name] || name == "init" }) {
			begin, end := positions.Position(decl.Pos()).Offset, positions.Position(decl.End()).Offset
			for i := begin; i < min(end, len(text)); i++ {
				if text[i] != '\n' {
					text[i] = ' '
				}
			}
		}
	}
	return string(text)
}
