package gocell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parameterLine matches a line of the cell in which papermill passes parameters.
var parameterLine = regexp.MustCompile(`^var (\w+) = (.*)$`)

// compositeType matches the type of a list or map that papermill wrote.
var compositeType = regexp.MustCompile(`^(?:\[\]|map\[)[^{"]*`)

// TypedParameters gives the variables of a cell that papermill injected ("// Parameters", then var
// NAME = VALUE) the types, or the const, with which earlier cells declare them. It returns other
// cells unchanged.
func TypedParameters(code string, earlier []string) string {
	lines := strings.Split(code, "\n")
	if !strings.HasPrefix(lines[0], "// Parameters") {
		return code
	}
	for i, line := range lines[1:] {
		parts := parameterLine.FindStringSubmatch(line)
		if parts == nil {
			if strings.TrimSpace(line) != "" {
				return code
			}
			continue
		}
		if keyword, kind := declaration(parts[1], earlier); keyword != "" {
			value := parts[2]
			if kind == durationType {
				value = durationOf(value)
			}
			if composite := compositeType.FindString(value); composite != "" && kind != "" {
				value, kind = kind+withoutInnerTypes(value, kind)[len(composite):], ""
			}
			lines[i+1] = strings.TrimSpace(keyword+" "+parts[1]+" "+kind) + " = " + value
		}
	}
	return strings.Join(lines, "\n")
}

// withoutInnerTypes returns a list or map without the types of the lists and maps in it: they
// follow from its own.
func withoutInnerTypes(value, kind string) string {
	expr, err := parser.ParseExpr(value)
	if err != nil || strings.Contains(kind, "any") || strings.Contains(kind, "interface") {
		return value
	}
	var text strings.Builder
	at := 0
	ast.Inspect(expr, func(n ast.Node) bool {
		if inner, ok := n.(*ast.CompositeLit); ok && n != expr && inner.Type != nil {
			text.WriteString(value[at : inner.Pos()-1])
			at = int(inner.Lbrace) - 1
		}
		return true
	})
	return text.String() + value[at:]
}

const durationType = "time.Duration"

// durationOf returns a duration that papermill wrote as a string, such as "90s". Anything else
// becomes a string that the compiler refuses, and that says why: a number would be nanoseconds.
func durationOf(value string) string {
	text, err := strconv.Unquote(value)
	if err != nil {
		text = value
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return strconv.Quote(text + " is not a time.Duration: give one such as 90s or 1h30m")
	}
	return fmt.Sprintf("time.Duration(%d)", d.Nanoseconds())
}

// declaration describes the last declaration of a variable or constant in the cells: its keyword,
// and its type if the declaration states it or a variable's value shows it.
func declaration(name string, cells []string) (keyword, kind string) {
	for i := len(cells) - 1; i >= 0; i-- {
		source := Parse(cells[i]).File().Text()
		file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && (d.Tok == token.VAR || d.Tok == token.CONST) {
				if spec, at := specOf(d, name); spec != nil {
					return d.Tok.String(), typeOf(source, spec, at, d.Tok == token.VAR)
				}
			}
		}
	}
	return "", ""
}

// IsDuration reports whether an expression is time.Duration itself or is made of numbers and time's
// units.
func IsDuration(expr ast.Expr) bool {
	switch x := expr.(type) {
	case *ast.SelectorExpr:
		pkg, ok := x.X.(*ast.Ident)
		units := "Duration Nanosecond Microsecond Millisecond Second Minute Hour"
		return ok && pkg.Name == "time" && strings.Contains(" "+units+" ", " "+x.Sel.Name+" ")
	case *ast.BinaryExpr:
		arithmetic := x.Op.Precedence() >= token.ADD.Precedence()
		return arithmetic && (IsDuration(x.X) || IsDuration(x.Y))
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		return ok && f.Sel.Name == "Duration" && IsDuration(f)
	case *ast.ParenExpr:
		return IsDuration(x.X)
	}
	return false
}

func specOf(d *ast.GenDecl, name string) (spec *ast.ValueSpec, at int) {
	for _, s := range d.Specs {
		values, ok := s.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, ident := range values.Names {
			if ident.Name == name {
				return values, i
			}
		}
	}
	return nil, 0
}

// typeOf returns the type that a declaration states or, if typed is set, the type that its value
// shows: a literal's type, or that of a conversion.
func typeOf(source string, spec *ast.ValueSpec, at int, typed bool) string {
	text := func(n ast.Node) string { return source[n.Pos()-1 : n.End()-1] }
	if spec.Type != nil {
		return text(spec.Type)
	}
	switch {
	case at >= len(spec.Values):
		return ""
	case IsDuration(spec.Values[at]):
		return durationType
	case !typed:
		return ""
	}
	switch value := spec.Values[at].(type) {
	case *ast.BasicLit:
		return map[token.Token]string{token.INT: "int", token.FLOAT: "float64", token.STRING: "string", token.CHAR: "rune"}[value.Kind]
	case *ast.CompositeLit:
		if value.Type != nil {
			return text(value.Type)
		}
	case *ast.CallExpr:
		if ident, ok := value.Fun.(*ast.Ident); ok && len(value.Args) == 1 && isBasic(ident.Name) {
			return ident.Name
		}
	}
	return ""
}

// isBasic reports whether a name is one of Go's basic types.
func isBasic(name string) bool {
	t, ok := types.Universe.Lookup(name).(*types.TypeName)
	if ok {
		_, ok = t.Type().(*types.Basic)
	}
	return ok
}
