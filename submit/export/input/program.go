package input

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
	"gonbatch/internal/nearest"
	"gonbatch/internal/yamldoc"
	"gonbatch/submit/export/gomod"
	"gonbatch/submit/export/nbcell"
)

// Program describes a program's flags as far as its source shows them.
type Program struct {
	flags []Flag
	// parses is set if the program parses its arguments, open if it may have flags that its source
	// doesn't show.
	parses, open bool
	// config has the names in the YAML file of the trainer's configuration; nil if the program
	// reads none.
	config []string
}

// Problem describes why a program with a name would not accept arguments, or a file of the
// trainer's configuration that they name; "" if it would. sure is false if the problem is an
// unknown flag and the program may have flags that its source doesn't show. Relative paths begin in
// folder.
func (p Program) Problem(name string, args []string, folder string) (problem string, sure bool) {
	if !p.parses {
		return "", true
	}
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range p.flags {
		f.define(set)
	}
	err := set.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		for _, arg := range set.Args() {
			if name, _, assigns := strings.Cut(arg, "="); assigns && set.Lookup(name) != nil {
				return fmt.Sprintf("%q sets nothing: did you mean -%[1]s, before all arguments that are not flags?", arg), false
			}
		}
		return p.configProblem(set, folder), true
	}
	problem = err.Error()
	unknown, undefined := strings.CutPrefix(problem, "flag provided but not defined: -")
	if undefined {
		problem = fmt.Sprintf("-%s is not a flag of its program%s; submit params lists the flags, and every program of the job gets all arguments", unknown, p.meant(unknown))
	}
	return problem, !undefined || !p.open
}

// configProblem describes a mistyped name in the YAML file of the trainer's configuration, if the
// flags name one that is there; "" if there is none.
func (p Program) configProblem(set *flag.FlagSet, folder string) string {
	if p.config == nil {
		return ""
	}
	path := set.Lookup("config").Value.String()
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "" // An earlier cell may write it.
	}
	if err := cmp.Or(yamldoc.Single(text), yamldoc.Misspelled(text, p.config)); err != nil {
		return fmt.Sprintf("-config %s: %v", path, err)
	}
	return ""
}

// Values returns the values of the program's flags: see FlagValues.
func (p Program) Values(args []string) map[string]string { return FlagValues(p.flags, args) }

// meant suggests a flag for a mistyped one.
func (p Program) meant(name string) string {
	var names []string
	for _, f := range p.flags {
		names = append(names, f.Name)
	}
	if near := nearest.Words(name, names); len(near) > 0 {
		return ": did you mean -" + strings.Join(near, " or -") + "?"
	}
	return ""
}

// define defines a flag that accepts the same values as the program's.
func (f Flag) define(set *flag.FlagSet) {
	if set.Lookup(f.Name) != nil || f.Name == "" || strings.HasPrefix(f.Name, "-") || strings.Contains(f.Name, "=") {
		return // The program would panic.
	}
	switch f.Type {
	case "bool":
		set.Bool(f.Name, false, "")
	case "boolfunc", "": // A flag of flag.Var may take a value or none.
		set.BoolFunc(f.Name, "", func(string) error { return nil })
	case "int":
		set.Int(f.Name, 0, "")
	case "int64":
		set.Int64(f.Name, 0, "")
	case "uint":
		set.Uint(f.Name, 0, "")
	case "uint64":
		set.Uint64(f.Name, 0, "")
	case "float64":
		set.Float64(f.Name, 0, "")
	case "duration", "time.Duration":
		set.Duration(f.Name, 0, "")
	default:
		set.String(f.Name, "", "")
	}
}

// ReadProgram reads the flags that a program defines. sourceDir is gonbatch's source tree, with the
// flags of package trainer.
func ReadProgram(source, sourceDir string) (p Program) {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		return p // The compiler says more.
	}
	paths := gomodule.ImportsOf([]byte(source))
	p.open = slices.ContainsFunc(paths, mayDefineFlags)
	text := func(from, to token.Pos) string { return source[from-file.FileStart : to-file.FileStart] }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			name := text(n.Pos(), n.End())
			p.open = p.open || name == "os.Args" || name == "flag.NewFlagSet"
		case *ast.CallExpr:
			p.call(n, sourceDir, paths, text)
		}
		return true
	})
	return p
}

// call reads a call that may define or parse flags.
func (p *Program) call(call *ast.CallExpr, sourceDir string, paths []string, text func(from, to token.Pos) string) {
	if f, ok := readFlag(nbcell.Ref{}, call, text); ok {
		p.flags = append(p.flags, f)
		p.open = p.open || !strings.Contains(text(call.Pos(), call.End()), strconv.Quote(f.Name)) // Its name is computed.
		return
	}
	p.parses = p.parses || nbcell.Callee(call) == "flag.Parse"
	switch {
	case !takesCommandLine(call):
	case isAddFlags(call) && slices.Contains(paths, TrainerPackage):
		flags := trainerFlags(sourceDir)
		p.flags = append(p.flags, flags...)
		for _, f := range flags[1:] { // The first names the file.
			p.config = append(p.config, f.Name)
		}
	default:
		p.open = true
	}
}

// mayDefineFlags reports whether a package may define flags, by itself or for its caller. Most
// third-party packages may.
func mayDefineFlags(importPath string) bool {
	if gocell.IsStandard(importPath) || strings.HasPrefix(importPath, "gonbatch/") || strings.HasPrefix(importPath, gomod.GonbUI) {
		return false
	}
	return !strings.HasPrefix(importPath, gomod.GoMLX) || strings.HasSuffix(importPath, "/commandline") || strings.HasSuffix(importPath, "/xslices")
}
