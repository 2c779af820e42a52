package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
)

// trainingFile is the file in Cell with a Training run. It does not exist for tests.
const trainingFile = "training"

// Training describes a cell's program that may train.
type Training struct {
	// Place is the beginning of the path for its checkpoints. It depends on the code: if the same
	// program runs again, it resumes its training; a changed program starts a new one.
	Place string `json:"place"`
	// Uses are the names of the declarations that main and the init functions need.
	Uses []string `json:"uses"`
	// Trains is set if the trainer's package is among them.
	Trains bool `json:"trains"`
}

// ReadTraining reads the Training of the last program that was built.
func ReadTraining(cellDir string) (t Training, err error) {
	text, err := os.ReadFile(filepath.Join(cellDir, trainingFile))
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(text, &t)
}

// trainer is the name of the trainer's package.
const trainer = "trainer"

// noteTraining writes trainingFile.
func (b *builder) noteTraining() {
	file := filepath.Join(b.Cell, trainingFile)
	text, err := os.ReadFile(b.mainFile())
	c := readCode(string(text), false)
	if err != nil || b.isTest() || c == nil || b.Checkpoints == "" {
		_ = os.Remove(file)
		return
	}
	if modules := b.modules(); modules != nil {
		c.texts = append(append(c.texts, modules.State(c.imports)...), modules.Indirect(c.imports)...)
	}
	note, err := json.Marshal(Training{filepath.Join(b.Checkpoints, c.hash()), c.uses, slices.Contains(c.uses, trainer)})
	if err != nil || os.WriteFile(file, note, 0o600) != nil {
		_ = os.Remove(file) // Without it, no checkpoints are written.
	}
}

// always are the names of what runs or counts in every program: blank variables are initialized,
// and packages imported under these names too.
var always = []string{"main", "init", "_", "."}

// code is what always runs in a program, and the declarations and imports that its main needs.
type code struct {
	// texts are all of them, regardless of their positions and of comments.
	texts []string
	// uses are the names of the declarations, and the trainer's if they use it. imports are the
	// paths of the imports.
	uses, imports []string
}

// hash returns a hash of the code.
func (c *code) hash() string {
	slices.Sort(c.texts)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", slices.Compact(c.texts)))
	return hex.EncodeToString(sum[:8])
}

// readCode reads what always runs in a program and what this needs. With initials, the initial
// values of all variables count: they are computed whether the variable is used or not. It returns
// nil if the program can't be parsed.
func readCode(source string, initials bool) *code {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil
	}
	c := new(code)
	byName, imported := declarations(file), imports(file)
	open := slices.Clone(always)
	inspect := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			open = append(open, id.Name)
		}
		return true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		_, isFunc := n.(*ast.FuncDecl)
		if spec, ok := n.(*ast.ValueSpec); ok && initials {
			for _, value := range spec.Values {
				ast.Inspect(value, inspect)
			}
		}
		return !isFunc
	})
	for seen := map[string]bool{}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, i := range imported[name] {
			c.texts, c.imports = append(c.texts, i.text), append(c.imports, i.path)
		}
		if len(byName[name]) == 0 && name != trainer {
			continue
		}
		if name != "_" {
			c.uses = append(c.uses, name)
		}
		for _, node := range byName[name] {
			c.texts = append(c.texts, bare(source[node.Pos()-file.FileStart:node.End()-file.FileStart]))
			ast.Inspect(node, inspect)
		}
	}
	slices.Sort(c.uses)
	return c
}

// imported is an import. The text of C's has the code in its comment.
type imported struct{ path, text string }

// imports returns a program's imports by the names that they have in it.
func imports(file *ast.File) map[string][]imported {
	byName := map[string][]imported{}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.IMPORT {
			continue
		}
		for _, spec := range group.Specs {
			s := spec.(*ast.ImportSpec)
			path, _ := strconv.Unquote(s.Path.Value) // It was parsed.
			name := gocell.AssumedName(path)
			if s.Name != nil {
				name = s.Name.Name
			}
			text := "import " + path
			if path == "C" {
				text += " " + group.Doc.Text() + s.Doc.Text()
			}
			byName[name] = append(byName[name], imported{path, text})
		}
	}
	return byName
}

// declarations returns a program's declarations by name. Methods are under the name of their type,
// so they are included where the type is needed.
func declarations(file *ast.File) map[string][]ast.Node {
	byName, aliases := map[string][]ast.Node{}, aliases(file)
	for _, d := range file.Decls {
		for _, part := range parts(d) {
			keys := gocell.Declared(part)
			if len(keys) == 0 {
				keys = []string{"_"}
			}
			for _, key := range keys {
				name, _, isMethod := strings.Cut(key, "~")
				for n := 0; isMethod && aliases[name] != "" && n < len(aliases); n++ { // An alias could mean itself.
					name = aliases[name]
				}
				byName[name] = append(byName[name], part)
			}
		}
	}
	return byName
}

// aliases returns the types that a program has another name for, by that name.
func aliases(file *ast.File) map[string]string {
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Assign.IsValid() {
			all[spec.Name.Name] = gocell.Receiver(spec.Type)
		}
		_, isFunc := n.(*ast.FuncDecl)
		return !isFunc
	})
	return all
}

// bare returns Go source without comments and layout.
func bare(source string) string {
	var words []string
	for t := range gocell.Tokens(source, 0) {
		words = append(words, t.Kind.String()+" "+strings.TrimSpace(t.Text))
	}
	return strings.Join(words, "\n")
}

// parts splits a declaration, but no import, into single ones: GoNB may join those of several
// cells. Constants are not split, because they build on one another.
func parts(d ast.Decl) (all []ast.Decl) {
	group, ok := d.(*ast.GenDecl)
	if !ok || group.Tok == token.CONST {
		return []ast.Decl{d}
	}
	if group.Tok == token.IMPORT {
		return nil
	}
	for _, spec := range group.Specs {
		all = append(all, &ast.GenDecl{TokPos: spec.Pos(), Tok: group.Tok, Specs: []ast.Spec{spec}})
	}
	return all
}
