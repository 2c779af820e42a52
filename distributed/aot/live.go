package aot

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// statement matches the beginning of one: the values that it defines, or none if it returns.
	statement = regexp.MustCompile(`(?m)^\s*(?:(%[\w.]+(?::\d+)?(?:, %[\w.]+)*) = |"?(?:stablehlo\.|func\.)?return\b)`)
	value     = regexp.MustCompile(`%[\w.]+`)
)

// live is a StableHLO program without the statements whose values are not used: GoMLX builds the
// gradient of the batch too, and leaves it to XLA to notice that it is unused.
func live(program string) string {
	functions := strings.Split(program, "func.func ")
	for i, function := range functions {
		functions[i] = liveStatements(function)
	}
	return strings.Join(functions, "")
}

func liveStatements(function string) string {
	begins := statement.FindAllStringSubmatchIndex(function, -1)
	used := map[string]bool{}
	var kept []string
	end := len(function)
	for _, begin := range slices.Backward(begins) {
		text := function[begin[0]:end]
		end = begin[0]
		if begin[2] >= 0 && !slices.ContainsFunc(value.FindAllString(function[begin[2]:begin[3]], -1), func(name string) bool { return used[name] }) {
			continue
		}
		for _, name := range value.FindAllString(text, -1) {
			used[name] = true
		}
		kept = append(kept, text)
	}
	slices.Reverse(kept)
	return strings.Join(kept, "")
}
