package stablehlo

import (
	"errors"
	"fmt"
	"strings"
)

// step is how much more the statements of a function are indented than the function, and regionStep
// those of a region than its operation.
const (
	step       = "  "
	regionStep = step + step + step
)

// function begins a function.
const function = "func.func "

// Parse reads a program.
func Parse(text string) (*Module, error) {
	m := &Module{}
	for line, rest := 1, text; ; {
		at := lineWith(rest, function)
		if at < 0 {
			m.end = rest
			return m, m.checkEnds()
		}
		f, n, err := parseFunction(rest[at:])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line+strings.Count(rest[:at], "\n"), err)
		}
		f.before = rest[:at]
		m.Functions = append(m.Functions, f)
		line += strings.Count(rest[:at+n], "\n")
		rest = rest[at+n:]
	}
}

// checkEnds refuses a program without functions, and one that has something else between them.
func (m *Module) checkEnds() error {
	if len(m.Functions) == 0 {
		return errors.New("it has no functions")
	}
	for _, f := range m.Functions[1:] {
		if strings.TrimSpace(f.before) != "" {
			return fmt.Errorf("unknown text before function @%s: %.200s", f.Name, f.before)
		}
	}
	if strings.Trim(m.end, " }\n") != "" {
		return fmt.Errorf("unknown text after the functions: %.200s", m.end)
	}
	return nil
}

// lineWith returns where the first line is that begins with a text, apart from its indent; -1 if
// there is none.
func lineWith(text, begin string) int {
	for from := 0; ; {
		at := strings.Index(text[from:], begin)
		if at < 0 {
			return -1
		}
		line := strings.LastIndexByte(text[:from+at], '\n') + 1
		if strings.TrimLeft(text[line:from+at], " ") == "" {
			return line
		}
		from += at + len(begin)
	}
}

// parseFunction reads the function at the beginning of a text, of n bytes.
func parseFunction(text string) (f *Function, n int, err error) {
	f = &Function{indent: text[:len(text)-len(strings.TrimLeft(text, " "))]}
	before, signature, ok := strings.Cut(text[len(f.indent):], "@")
	name, signature, ok2 := strings.Cut(signature, "(")
	end := closing(signature)
	results, ok3 := strings.CutPrefix(signature[end:], ") -> ")
	f.list = strings.HasPrefix(results, "(")
	size := 0
	if f.list { // Attributes of several lines are only in parentheses.
		size = min(1+closing(results[1:]), len(results))
	}
	brace := strings.Index(results[size:], " {\n")
	if !ok || !ok2 || !ok3 || brace < 0 {
		return nil, 0, fmt.Errorf("unknown form of a function: %.200s", text)
	}
	body := results[size+brace+len(" {\n"):]
	results = results[:size+brace]
	if strings.Contains(results[size:], "\n") {
		return nil, 0, fmt.Errorf("unknown form of a function: %.200s", text)
	}
	f.keywords, f.Name = before, name
	f.Parameters = parseParameters(signature[:end])
	for _, written := range List(unparenthesized(results)) {
		f.Results = append(f.Results, parseValue(written))
	}
	r := &reader{rest: body}
	if f.Ops, err = r.ops(f.indent + step); err == nil && r.next() != f.indent+"}" {
		err = r.unknown("statement")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("function @%s: %w", f.Name, err)
	}
	return f, len(text) - len(r.rest), nil
}

// reader reads lines.
type reader struct{ line, rest string }

// next reads a line.
func (r *reader) next() string {
	r.line, r.rest, _ = strings.Cut(r.rest, "\n")
	return r.line
}

func (r *reader) unknown(what string) error {
	return fmt.Errorf("unknown form of a %s: %.200s", what, r.line)
}

// ops reads the operations with an indent.
func (r *reader) ops(indent string) (all []*Op, err error) {
	for begins(r.rest, indent) {
		before := r.rest
		op, err := r.op(indent)
		if err != nil {
			return nil, err
		}
		op.text = before[:len(before)-len(r.rest)]
		all = append(all, op)
	}
	return all, nil
}

// begins reports whether a text begins with an operation with this indent.
func begins(text, indent string) bool {
	rest, ok := strings.CutPrefix(text, indent)
	return ok && rest != "" && (rest[0] == '%' || rest[0] == '"')
}

// op reads an operation.
func (r *reader) op(indent string) (*Op, error) {
	o, text := &Op{}, r.next()[len(indent):]
	if strings.HasPrefix(text, "%") {
		results, after, _ := strings.Cut(text, " = ")
		o.Results, text = List(results), after
	}
	text, quoted := strings.CutPrefix(text, `"`)
	name, text, named := strings.Cut(text, `"(`)
	operands, text, closed := strings.Cut(text, ")")
	if !quoted || !named || !closed || strings.ContainsAny(operands, "({[<") || strings.Contains(strings.Join(o.Results, ""), ":") {
		return nil, r.unknown("statement")
	}
	o.Name, o.Operands = name, List(operands)
	if text == " ({" {
		var err error
		if text, err = r.regions(o, indent); err != nil {
			return nil, err
		}
	}
	var attributes strings.Builder
	for ; signatureIn(text) < 0; text = r.next() {
		attributes.WriteString(text + "\n")
		if r.rest == "" {
			return nil, r.unknown("statement")
		}
	}
	at := signatureIn(text)
	types, out, ok := strings.Cut(text[at+len(" : ("):], ") -> ")
	if !ok {
		return nil, r.unknown("statement")
	}
	attributes.WriteString(text[:at])
	o.Attributes, o.Types, o.Out = strings.TrimSpace(attributes.String()), List(types), List(unparenthesized(out))
	return o, nil
}

// signatureIn returns where the types are on the last line of an operation, outside of strings; -1
// on another line.
func signatureIn(line string) (at int) {
	at = -1
	for i := 0; i < len(line); i++ {
		if line[i] == '"' {
			i += StringLength(line[i+1:])
		} else if strings.HasPrefix(line[i:], " : (") {
			at = i
		}
	}
	return at
}

// StringLength returns the length of the rest of a string, with its closing quote, in a program's
// text.
func StringLength[T string | []byte](text T) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// regions reads the regions of an operation. It returns what follows them on their last line.
func (r *reader) regions(o *Op, indent string) (rest string, err error) {
	for {
		head, ok := strings.CutPrefix(r.next(), indent+step+"^")
		name, parameters, ok2 := strings.Cut(head, "(")
		parameters, ok3 := strings.CutSuffix(strings.TrimRight(parameters, " "), ":")
		parameters, ok4 := strings.CutSuffix(strings.TrimRight(parameters, " "), ")")
		if !ok || !ok2 || !ok3 || !ok4 {
			return "", r.unknown("region")
		}
		region := &Region{Name: name, Parameters: parseParameters(parameters)}
		if region.Ops, err = r.ops(indent + regionStep); err != nil {
			return "", err
		}
		o.Regions = append(o.Regions, region)
		rest, ok := strings.CutPrefix(r.next(), indent+"}")
		switch {
		case ok && rest == ", {":
		case ok && strings.HasPrefix(rest, ")"):
			return rest[1:], nil
		default:
			return "", r.unknown("region")
		}
	}
}

func parseParameters(text string) (all []Value) {
	for _, written := range List(text) {
		name, typed, _ := strings.Cut(written, ": ")
		v := parseValue(typed)
		v.Name = name
		all = append(all, v)
	}
	return all
}

// parseValue parses `tensor<8xf32> { a = b }`.
func parseValue(written string) Value {
	typed, attributes, _ := strings.Cut(written, " {")
	return Value{Type: typed, Attributes: strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(attributes), "}"))}
}

// closing returns where the parenthesis is that closes one before the text; len(text) if none does.
func closing(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += StringLength(text[i+1:])
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return len(text)
}

func unparenthesized(text string) string {
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		return text[1 : len(text)-1]
	}
	return text
}

// List splits a text at the commas outside brackets.
func List(text string) []string {
	var parts []string
	depth, begin := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += StringLength(text[i+1:])
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(text[begin:i]))
				begin = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(text[begin:]); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}
