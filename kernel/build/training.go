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
	"strings"

	"gonbatch/internal/gocell"
)

// trainingFile is the file of Cell that has a Training. It is not there for tests.
const trainingFile = "training"

// Training is what is known of a cell's program that may train.
type Training struct {
	// Place is the beginning of the place for its checkpoints. It belongs to the code: the same
	// program, run again, resumes its training, and a changed one starts another.
	Place string `json:"place"`
	// Uses are the names of what main and the init functions need.
	Uses []string `json:"uses"`
	// Trains is set if these name the trainer's package.
	Trains bool `json:"trains"`
}

// ReadTraining reads the Training of the program that was built last.
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
	hash, uses := codeHash(string(text))
	if err != nil || b.isTest() || hash == "" || b.Checkpoints == "" {
		_ = os.Remove(file)
		return
	}
	note, err := json.Marshal(Training{filepath.Join(b.Checkpoints, hash), uses, slices.Contains(uses, trainer)})
	if err != nil || os.WriteFile(file, note, 0o600) != nil {
		_ = os.Remove(file) // Without it, no checkpoints are written.
	}
}

// codeHash is a hash of the declarations of a program that its main needs, and of its init
// functions, without the places where they stand, and without comments; "" if it can't be parsed.
// uses are the names of those declarations, and the trainer's if they have it.
func codeHash(source string) (hash string, uses []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		return "", nil
	}
	byName := declarations(file)
	var texts []string
	open := []string{"main", "init"}
	for seen := map[string]bool{}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		if seen[name] || len(byName[name]) == 0 && name != trainer {
			continue
		}
		seen[name] = true
		uses = append(uses, name)
		for _, node := range byName[name] {
			texts = append(texts, bare(source[node.Pos()-file.FileStart:node.End()-file.FileStart]))
			ast.Inspect(node, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					open = append(open, id.Name)
				}
				return true
			})
		}
	}
	slices.Sort(texts)
	slices.Sort(uses)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", slices.Compact(texts)))
	return hex.EncodeToString(sum[:8]), uses
}

// declarations are a program's, by their names; methods by that of their type, where they are
// needed.
func declarations(file *ast.File) map[string][]ast.Node {
	byName := map[string][]ast.Node{}
	for _, d := range file.Decls {
		for _, part := range parts(d) {
			for _, key := range gocell.Declared(part) {
				name, _, _ := strings.Cut(key, "~")
				byName[name] = append(byName[name], part)
			}
		}
	}
	return byName
}

// bare is a text of Go without its comments and its layout.
func bare(source string) string {
	var words []string
	for t := range gocell.Tokens(source, 0) {
		words = append(words, t.Kind.String()+" "+strings.TrimSpace(t.Text))
	}
	return strings.Join(words, "\n")
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
