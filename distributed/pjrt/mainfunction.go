package pjrt

import "strings"

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
	// mainReturn matches the return statement. The bodies of operations are indented more.
	mainReturn = startPattern(`    "stablehlo.return"(`, `    "stablehlo\.return"\(([^()]*)\)`)
	// mainStatement matches the first line of an operation.
	mainStatement = wholePattern(`"stablehlo.`, `    (%\w+) = "stablehlo\.(\w+)"\(([^()]*)\)(?s:.*)`)
	// mainGather matches an all-gather in place.
	mainGather = wholePattern(`"func.call"(`, `    (%\w+) = "func\.call"\(([^()]*)\) \{ callee = @gonbatch_`+string(inPlace)+opNames[allGather]+`(?s:.*)`)
)

// mainText is the text of a module with a main function.
type mainText struct {
	before, parameters string // before ends with the parenthesis before the parameters.
	results            string // Their types.
	statements, behind string // The statements end with the operands of the return.
	returned           string // These operands.
}

// cutMain cuts a module. It reports false if the module has another form.
//
//	func.func @main(PARAMETERS) -> RESULTS {
//	  STATEMENTS
//	  "stablehlo.return"(RETURNED) BEHIND
func cutMain(module string) (t mainText, ok bool) {
	const mark = "@main("
	name := strings.Index(module, mark)
	if name < 0 {
		return t, false
	}
	keywords := strings.TrimLeft(module[strings.LastIndexByte(module[:name], '\n')+1:name], " ")
	rest := module[name+len(mark):]
	head, body, _ := strings.Cut(rest, "\n")
	arrow := strings.LastIndex(head, ") -> ")
	end := mainReturn.find(rest, len(head))
	if keywords != "func.func " && keywords != "func.func public " || arrow < 0 || !strings.HasSuffix(head, " {") || body == "" || end == nil {
		return t, false
	}
	t.before, t.parameters = module[:name+len(mark)], head[:arrow]
	t.results = strings.TrimSuffix(head[arrow+len(") -> "):], " {")
	t.statements, t.behind = rest[len(head):end[1]], rest[end[1]:]
	t.returned = rest[end[2]:end[3]]
	return t, true
}

// after returns the text behind the parameters.
func (t mainText) after() string { return ") -> " + t.results + " {" + t.statements + t.behind }

// values returns the parameters.
func (t mainText) values() (all []value) {
	for _, written := range list(t.parameters) {
		name, rest, _ := strings.Cut(written, ": ")
		all = append(all, parseValue(name, rest))
	}
	return all
}

// parseMain parses a module. It reports false if the module has another form.
func parseMain(module string) (p *mainFunction, ok bool) {
	t, ok := cutMain(module)
	names, types := list(t.returned), list(unparenthesized(t.results))
	if !ok || len(names) != len(types) {
		return nil, false
	}
	p = &mainFunction{before: t.before, after: t.after(), parameters: t.values(), parameterNumbers: map[string]int{}, statements: map[string]statement{}}
	for i, v := range p.parameters {
		p.parameterNumbers[v.name] = i
	}
	for i, written := range types {
		p.results = append(p.results, parseValue(names[i], written))
	}
	for _, m := range mainStatement.all(t.statements) {
		p.statements[m[1]] = statement{operation: m[2], operands: list(m[3])}
	}
	for _, m := range mainGather.all(t.statements) {
		p.statements[m[1]] = statement{operation: gatherInPlace, operands: list(m[2])}
	}
	return p, true
}

// inMain replaces the statements of the main function: two functions may have values of the same
// name. It leaves a module of another form as it is.
func inMain(module string, f func(statements string) string) string {
	t, ok := cutMain(module)
	if !ok {
		return module
	}
	t.statements = f(t.statements)
	return t.before + t.parameters + t.after()
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
