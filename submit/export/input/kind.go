package input

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/gocell"
)

// kind describes the values that a parameter can have, and how Go writes them.
type kind struct {
	// name is the Go type as written in source; "" if the cell alone does not determine it.
	name  string
	basic *types.Basic // nil for other types
	// composite is the type of a list or of a map with strings as keys; nil for others.
	composite types.Type
	// convert is the type to which a value must be converted so that the parameter keeps its type;
	// "" if none.
	convert  string
	duration bool
	// flag is the flag's name if the parameter is a flag, or "".
	flag string
}

// newKind finds the kind of a spec's i-th name.
func newKind(e *editor, spec *ast.ValueSpec, i int) kind {
	var value ast.Expr
	if i < len(spec.Values) {
		value = spec.Values[i]
	}
	if gocell.IsDuration(spec.Type) || spec.Type == nil && gocell.IsDuration(value) {
		return kind{name: "time.Duration", duration: true}
	}
	if call, ok := value.(*ast.CallExpr); ok {
		if f, ok := readFlag(e.code.Cell.Ref, call, e.code.Between); ok {
			return kind{name: "flag", flag: f.Name}
		}
	}
	typ := e.typeOf(spec.Names[i])
	k := kind{name: strings.TrimPrefix(typeName(typ), "untyped ")}
	if typ == types.Typ[types.Invalid] {
		k.name = ""
		if spec.Type != nil {
			k.name = e.code.Between(spec.Type.Pos(), spec.Type.End())
		}
		return k
	}
	k.basic, _ = typ.Underlying().(*types.Basic)
	if isComposite(typ) {
		k.composite = typ
		return k
	}
	if spec.Type == nil && !literalType[typ.String()] {
		k.convert = k.name
	}
	return k
}

// literalType holds the types that literals have without a conversion.
var literalType = map[string]bool{
	"int": true, "float64": true, "string": true, "bool": true,
	"untyped int": true, "untyped float": true, "untyped string": true, "untyped bool": true,
}

// zero returns the value of a parameter declared without one.
func (k kind) zero() string {
	switch {
	case k.duration:
		return "0"
	case k.basic == nil:
		return ""
	case k.basic.Info()&types.IsBoolean != 0:
		return "false"
	case k.basic.Info()&types.IsString != 0:
		return `""`
	}
	return "0"
}

// literal returns the Go literal for a value from the user.
func (k kind) literal(text string) (string, error) {
	literal, err := k.plainLiteral(text)
	if err != nil || k.convert == "" {
		return literal, err
	}
	return k.convert + "(" + literal + ")", nil
}

func (k kind) plainLiteral(text string) (string, error) {
	switch {
	case k.flag != "":
		return "", fmt.Errorf("it is the flag %s; give it after --, as in: submit notebook.ipynb -- -%s %s", k.flag, k.flag, text)
	case k.duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return "", errors.New("not a time.Duration; give one such as 90s or 1h30m")
		}
		return fmt.Sprintf("time.Duration(%d)", d.Nanoseconds()), nil
	case k.composite != nil:
		return compositeLiteral(k.composite, text)
	case k.basic == nil && k.name == "":
		return "", errors.New("its type cannot be known from this cell; declare it with a number, a string or a boolean")
	case k.basic == nil:
		return "", fmt.Errorf("its type is %s; only time.Duration, numbers, strings, booleans, and lists and maps of the last three can be set", k.name)
	}
	switch info := k.basic.Info(); {
	case info&types.IsBoolean != 0:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return "", fmt.Errorf("not a %s; give true or false", k.name)
		}
		return strconv.FormatBool(v), nil
	case info&types.IsInteger != 0:
		return k.integer(text)
	case info&types.IsFloat != 0:
		return k.float(text)
	case info&types.IsString != 0:
		return strconv.Quote(text), nil
	}
	return "", fmt.Errorf("its type is %s; only time.Duration, numbers, strings, booleans, and lists and maps of the last three can be set", k.name)
}

// bits returns the size of a number's type; 64 if it is untyped.
func (k kind) bits() int {
	if k.basic.Info()&types.IsUntyped != 0 {
		return 64
	}
	return 8 * int(types.SizesFor("gc", "amd64").Sizeof(k.basic))
}

// decimal matches a number with leading zeros, such as seq -w and job arrays give, which Go would
// read as octal.
var decimal = regexp.MustCompile(`^([+-]?)0[0_]*([0-9][0-9_]*)$`)

func (k kind) integer(text string) (string, error) {
	var err error
	text = decimal.ReplaceAllString(text, "$1$2")
	example := "20 or -3"
	if k.basic.Info()&types.IsUnsigned != 0 {
		example = "20"
		_, err = strconv.ParseUint(text, 0, k.bits())
	} else {
		_, err = strconv.ParseInt(text, 0, k.bits())
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "", fmt.Errorf("does not fit into %s", k.name)
	case err != nil:
		return "", fmt.Errorf("not a whole number, and its type is %s; give one such as %s", k.name, example)
	}
	return strings.TrimPrefix(text, "+"), nil
}

func (k kind) float(text string) (string, error) {
	v, err := strconv.ParseFloat(text, k.bits())
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "", fmt.Errorf("does not fit into %s", k.name)
	case err != nil || math.IsInf(v, 0) || math.IsNaN(v):
		return "", fmt.Errorf("not a number, and its type is %s; give one such as 5e-4", k.name)
	}
	literal := strconv.FormatFloat(v, 'g', -1, k.bits())
	if !strings.ContainsAny(literal, ".e") {
		literal += ".0"
	}
	return literal, nil
}
