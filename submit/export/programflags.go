package export

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
)

// programFlags describes a program's flags as far as its source shows them.
type programFlags struct {
	flags []Flag
	// parses is set if the program parses its arguments, open if it may have flags that its source
	// doesn't show.
	parses, open bool
}

// ArgsProblem describes why a program would not accept its arguments; "" if it would. sure is false
// if the problem is an unknown flag and the program may have flags that its source doesn't show.
func (m *Module) ArgsProblem(cell rundir.Cell, args []string) (problem string, sure bool) {
	p := m.flagsOf(cell)
	if !p.parses {
		return "", true
	}
	set := flag.NewFlagSet(cell.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range p.flags {
		f.define(set)
	}
	err := set.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return "", true
	}
	problem = err.Error()
	name, undefined := strings.CutPrefix(problem, "flag provided but not defined: -")
	if undefined {
		problem = fmt.Sprintf("-%s is not a flag of its program%s; submit params lists the flags, and every program of the job gets all arguments", name, p.meant(name))
	}
	return problem, !undefined || !p.open
}

// FlagValues returns the values of the notebook's flags, by name, in a program with these
// arguments. Defaults are as written in the cells.
func (m *Module) FlagValues(args []string) map[string]string {
	values := map[string]string{}
	set := flag.NewFlagSet(m.Notebook, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, f := range m.Flags {
		values[f.Name] = unquoted(f.Default)
		f.define(set)
	}
	_ = set.Parse(args) // ArgsProblem has reported mistakes.
	set.Visit(func(f *flag.Flag) { values[f.Name] = cmp.Or(f.Value.String(), "true") })
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	return values
}

// ParameterValues returns the values of the notebook's parameters, by name: the given ones, or as
// written in the cells.
func (m *Module) ParameterValues(given map[string]string) map[string]string {
	values := map[string]string{}
	for _, p := range m.Parameters {
		values[p.Name] = unquoted(p.Default)
	}
	maps.Copy(values, given)
	return values
}

// meant suggests a flag for a mistyped one.
func (p programFlags) meant(name string) string {
	var names []string
	for _, f := range p.flags {
		names = append(names, f.Name)
	}
	if near := gocell.Nearest(name, names); len(near) > 0 {
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

// flagsOf reads the flags that a program defines.
func (m *Module) flagsOf(cell rundir.Cell) (p programFlags) {
	source := string(m.Files[cell.Source()])
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		return p // The compiler says more.
	}
	paths := programImports([]byte(source))
	p.open = slices.ContainsFunc(paths, mayDefineFlags)
	text := func(from, to token.Pos) string { return source[from-file.FileStart : to-file.FileStart] }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			name := text(n.Pos(), n.End())
			p.open = p.open || name == "os.Args" || name == "flag.NewFlagSet"
		case *ast.CallExpr:
			p.call(m, n, paths, text)
		}
		return true
	})
	return p
}

// call reads a call that may define or parse flags.
func (p *programFlags) call(m *Module, call *ast.CallExpr, paths []string, text func(from, to token.Pos) string) {
	if f, ok := readFlag(&cellInfo{}, call, text); ok {
		p.flags = append(p.flags, f)
		p.open = p.open || !strings.Contains(text(call.Pos(), call.End()), strconv.Quote(f.Name)) // Its name is computed.
		return
	}
	p.parses = p.parses || calledName(call) == "flag.Parse"
	switch {
	case !takesCommandLine(call):
	case isAddFlags(call) && slices.Contains(paths, trainerPackage):
		p.flags = append(p.flags, trainerFlags(m.SourceDir)...)
	default:
		p.open = true
	}
}

// mayDefineFlags reports whether a package may define flags, by itself or for its caller. Most
// third-party packages may.
func mayDefineFlags(importPath string) bool {
	if gocell.IsStandard(importPath) || strings.HasPrefix(importPath, "gonbatch/") || strings.HasPrefix(importPath, gonbui) {
		return false
	}
	return !strings.HasPrefix(importPath, gomlxPrefix) || strings.HasSuffix(importPath, "/commandline") || strings.HasSuffix(importPath, "/xslices")
}
