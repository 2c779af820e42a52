package assist

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"gonbatch/kernel/cell"
)

// compose makes the two files that gopls sees: the cell, which imports what the session does, and the rest of the program that the
// session has built last, without its main and without what the cell declares again.
func compose(code, built string, std map[string]string) (doc *document, session string) {
	doc = &document{code: code, text: cell.Source(code)}
	if offset, ok := bareStatement(doc.text); ok {
		const opening = "func _() { "
		before := doc.text[:offset]
		doc.insertedLine, doc.insertedLength = strings.Count(before, "\n"), len(opening)
		doc.insertedAt = len(before) - strings.LastIndex(before, "\n") - 1
		doc.text = before + opening + doc.text[offset:] + "\n}\n"
	}
	cellTree, _ := parser.ParseFile(token.NewFileSet(), "", doc.text, parser.SkipObjectResolution)
	positions := token.NewFileSet()
	sessionTree, _ := parser.ParseFile(positions, "", built, parser.SkipObjectResolution)
	imports := missingImports(doc.text, cellTree, sessionTree, std)
	doc.text = "package main; import (" + strings.Join(imports, "; ") + ")" + strings.TrimPrefix(doc.text, "package main")
	return doc, remaining(built, positions, sessionTree, cellTree)
}

// bareStatement finds the first statement of a file that stands outside of all functions, where only declarations may.
func bareStatement(text string) (offset int, ok bool) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	depth, begins := 0, true
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return 0, false
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth = max(depth-1, 0)
			continue
		case token.SEMICOLON:
			begins = depth == 0
			continue
		case token.PACKAGE, token.IMPORT, token.TYPE, token.VAR, token.CONST, token.FUNC:
			begins = false
		}
		if begins {
			return file.Offset(pos), true
		}
	}
}

// selector is what a package's name looks like where it is used.
var selector = regexp.MustCompile(`(?:^|[^\w.)\]"])([a-z]\w*)\.`)

// missingImports are what a cell has to import: what the session imports, and those packages of the standard library that the cell
// seems to use; the kernel's own goimports would do the same when it runs.
func missingImports(text string, cellTree, sessionTree *ast.File, std map[string]string) []string {
	known := map[string]bool{}
	for _, spec := range importsOf(cellTree) {
		known[importName(spec)] = true
	}
	for name := range declared(cellTree) {
		known[name] = true
	}
	for name := range declared(sessionTree) {
		known[name] = true
	}
	var missing []string
	add := func(name, spec string) {
		if !known[name] {
			known[name] = true
			missing = append(missing, spec)
		}
	}
	for _, spec := range importsOf(sessionTree) {
		text := spec.Path.Value
		if spec.Name != nil {
			text = spec.Name.Name + " " + text
		}
		if name := importName(spec); name != "." && name != "_" {
			add(name, text)
		}
	}
	for _, match := range selector.FindAllStringSubmatch(text, -1) {
		if path, ok := std[match[1]]; ok {
			add(match[1], fmt.Sprintf("%q", path))
		}
	}
	return missing
}

// importText lists what a Go file imports.
func importText(name string) string {
	tree, _ := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	var text strings.Builder
	for _, spec := range importsOf(tree) {
		text.WriteString(spec.Path.Value + "\n")
	}
	return text.String()
}

func importsOf(tree *ast.File) []*ast.ImportSpec {
	if tree == nil {
		return nil
	}
	return tree.Imports
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// importName is the name by which a file knows an import; where the package has another than its folder, a guess.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	importPath := strings.Trim(spec.Path.Value, "\"`")
	if version.MatchString(path.Base(importPath)) {
		importPath = path.Dir(importPath)
	}
	return path.Base(importPath)
}

// declared are the names that a file declares, methods as Type~Method.
func declared(tree *ast.File) map[string]bool {
	names := map[string]bool{}
	if tree == nil {
		return names
	}
	for _, decl := range tree.Decls {
		for _, name := range declaredBy(decl) {
			names[name] = true
		}
	}
	delete(names, "_")
	return names
}

func declaredBy(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || len(d.Recv.List) == 0 {
			return []string{d.Name.Name}
		}
		return []string{receiver(d.Recv.List[0].Type) + "~" + d.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, ident := range s.Names {
					names = append(names, ident.Name)
				}
			}
		}
		return names
	}
	return nil
}

func receiver(x ast.Expr) string {
	switch t := x.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// remaining is the session's program without its main, and without the declarations that the cell replaces.
func remaining(built string, positions *token.FileSet, sessionTree, cellTree *ast.File) string {
	if sessionTree == nil || built == "" {
		return "package main\n"
	}
	replaced := declared(cellTree)
	replaced["main"] = true
	text := []byte(built)
	for _, decl := range sessionTree.Decls {
		if slices.ContainsFunc(declaredBy(decl), func(name string) bool { return replaced[name] || name == "init" }) {
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

// preferred are the packages that are meant by names which several of the standard library's have.
var preferred = map[string]string{"rand": "math/rand", "template": "text/template", "scanner": "text/scanner", "pprof": "runtime/pprof", "types": "go/types", "parser": "go/parser"}

// standardPackages are the packages of the standard library by their names.
func standardPackages(ctx context.Context, dir string, environ []string) map[string]string {
	packages := map[string]string{}
	for name, path := range preferred {
		packages[name] = path
	}
	cmd := exec.CommandContext(ctx, "go", "list", "std")
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.Output()
	if err != nil {
		return packages
	}
	for importPath := range strings.FieldsSeq(string(out)) {
		name := path.Base(importPath)
		if version.MatchString(name) {
			name = path.Base(path.Dir(importPath))
		}
		if strings.Contains("/"+importPath+"/", "/internal/") || strings.HasPrefix(importPath, "vendor/") || packages[name] != "" && len(packages[name]) <= len(importPath) {
			continue
		}
		if preferred[name] == "" {
			packages[name] = importPath
		}
	}
	return packages
}
