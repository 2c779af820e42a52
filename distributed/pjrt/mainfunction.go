package pjrt

import (
	"regexp"
	"strings"
)

// mainFunction is the main function of a StableHLO module, in the form that go-xla writes.
type mainFunction struct {
	before, after       string // The text before and after the list of parameters.
	parameters, results []value
	parameterNumbers    map[string]int // By name.
	statements          map[string]statement
}

// value is a parameter or a result.
type value struct {
	name, shape string // %x, tensor<8x8xf32>
	attributes  string // Without braces; may be empty.
}

// kind is what two values must have in common to share the same memory on the same devices.
func (v value) kind() string { return v.shape + v.attributes }

// attributesWith writes the attributes and a further one, which may be empty.
func (v value) attributesWith(further string) string {
	switch {
	case v.attributes == "" && further == "":
		return ""
	case v.attributes == "":
		return " { " + further + " }"
	case further == "":
		return " { " + v.attributes + " }"
	}
	return " { " + v.attributes + ", " + further + " }"
}

// gatherInPlace is the operation of an all-gather in place.
const gatherInPlace = "all_gather_in_place"

// statement is an operation with one result.
type statement struct {
	operation string
	operands  []string
}

var (
	// mainHead matches the first line of the function.
	mainHead = regexp.MustCompile(`(?m)^( *func\.func (?:public )?@main\()(.*)(\) -> )(.*) \{$`)
	// mainReturn matches its return statement. The bodies of operations are indented more.
	mainReturn = regexp.MustCompile(`(?m)^    "stablehlo\.return"\(([^()]*)\)`)
	// mainStatement matches an operation on one line.
	mainStatement = regexp.MustCompile(`(?m)^    (%\w+) = "stablehlo\.(\w+)"\(([^()]*)\)`)
	// mainGather matches an all-gather in place.
	mainGather = regexp.MustCompile(`(?m)^    (%\w+) = "func\.call"\(([^()]*)\) \{ callee = @gonbatch_` + string(inPlace) + opNames[allGather])
)

// parseMain parses a module. It reports false if the module has another form.
func parseMain(module string) (p *mainFunction, ok bool) {
	head := mainHead.FindStringSubmatchIndex(module)
	if head == nil {
		return nil, false
	}
	body := module[head[1]:]
	end := mainReturn.FindStringSubmatchIndex(body)
	if end == nil {
		return nil, false
	}
	p = &mainFunction{before: module[:head[3]], after: module[head[5]:], parameterNumbers: map[string]int{}, statements: map[string]statement{}}
	for i, written := range list(module[head[4]:head[5]]) {
		name, rest, _ := strings.Cut(written, ": ")
		v := parseValue(name, rest)
		p.parameters = append(p.parameters, v)
		p.parameterNumbers[v.name] = i
	}
	names := list(body[end[2]:end[3]])
	types := list(unparenthesized(module[head[8]:head[9]]))
	if len(names) != len(types) {
		return nil, false
	}
	for i, written := range types {
		p.results = append(p.results, parseValue(names[i], written))
	}
	for _, m := range mainStatement.FindAllStringSubmatch(body[:end[0]], -1) {
		p.statements[m[1]] = statement{operation: m[2], operands: list(m[3])}
	}
	for _, m := range mainGather.FindAllStringSubmatch(body[:end[0]], -1) {
		p.statements[m[1]] = statement{operation: gatherInPlace, operands: list(m[2])}
	}
	return p, true
}

// inMain replaces the statements of the main function: two functions may have values of the same
// name. It leaves a module of another form as it is.
func inMain(module string, f func(statements string) string) string {
	head := mainHead.FindStringIndex(module)
	if head == nil {
		return module
	}
	end := mainReturn.FindStringIndex(module[head[1]:])
	if end == nil {
		return module
	}
	return module[:head[1]] + f(module[head[1]:head[1]+end[1]]) + module[head[1]+end[1]:]
}

// parseValue parses `tensor<8xf32> { a = b }`.
func parseValue(name, written string) value {
	shape, attributes, _ := strings.Cut(written, " {")
	return value{name: name, shape: shape, attributes: strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(attributes), "}"))}
}

func unparenthesized(text string) string {
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		return text[1 : len(text)-1]
	}
	return text
}

// list splits a string at the commas outside brackets.
func list(text string) []string {
	var parts []string
	depth, begin := 0, 0
	for i, c := range text {
		switch c {
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
