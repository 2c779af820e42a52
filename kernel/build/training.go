package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
)

// TrainingFile is the file of Cell with the folder that is the beginning of the place for the
// program's checkpoints. It is not there for tests.
const TrainingFile = "training"

// noteTraining writes TrainingFile. The place belongs to the code: the same program, run again,
// resumes its training, and a changed one starts another.
func (b *builder) noteTraining() {
	file := filepath.Join(b.Cell, TrainingFile)
	text, err := os.ReadFile(b.mainFile())
	hash := codeHash(string(text))
	if err != nil || b.isTest() || hash == "" || b.Checkpoints == "" {
		_ = os.Remove(file)
		return
	}
	_ = os.WriteFile(file, []byte(filepath.Join(b.Checkpoints, hash)), 0o600) // Without it, no checkpoints are written.
}

// codeHash is a hash of the declarations of a program that its main needs, and of its init
// functions, without the places where they stand; "" if it can't be parsed.
func codeHash(source string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	byName := map[string][]ast.Node{}
	open := []string{"main", "init"}
	for _, d := range file.Decls {
		for _, part := range parts(d) {
			for _, key := range gocell.Declared(part) {
				name, _, _ := strings.Cut(key, "~") // A method is needed where its type is.
				byName[name] = append(byName[name], part)
			}
		}
	}
	var texts []string
	for seen := map[string]bool{}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, node := range byName[name] {
			texts = append(texts, source[node.Pos()-file.FileStart:node.End()-file.FileStart])
			ast.Inspect(node, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					open = append(open, id.Name)
				}
				return true
			})
		}
	}
	slices.Sort(texts)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", slices.Compact(texts)))
	return hex.EncodeToString(sum[:8])
}

// parts are a declaration's own declarations: GoNB may join those of several cells. Constants build
// on one another.
func parts(d ast.Decl) (all []ast.Decl) {
	group, ok := d.(*ast.GenDecl)
	if !ok || group.Tok == token.CONST {
		return []ast.Decl{d}
	}
	for _, spec := range group.Specs {
		all = append(all, &ast.GenDecl{TokPos: spec.Pos(), Tok: group.Tok, Specs: []ast.Spec{spec}})
	}
	return all
}
