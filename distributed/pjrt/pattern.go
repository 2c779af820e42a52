package pjrt

import (
	"regexp"
	"strings"
)

// pattern finds statements in the text of a program. A program has megabytes, and a regular
// expression is slow: it is tried only at lines that contain a text that each match has.
type pattern struct {
	text  string // On the first line of each match.
	form  *regexp.Regexp
	whole bool // The form matches all of a statement: Go's regular expressions are then fast.
}

// wholePattern matches a whole statement of the main function.
func wholePattern(text, form string) pattern {
	return pattern{text: text, form: regexp.MustCompile(`\A` + form + `\z`), whole: true}
}

// startPattern matches from the beginning of a line, which may be followed by more.
func startPattern(text, form string) pattern {
	return pattern{text: text, form: regexp.MustCompile(`\A` + form)}
}

// find returns the indices of the first match at or after a place, and of its submatches; nil if
// there is none.
func (p pattern) find(program string, from int) []int {
	for {
		found := strings.Index(program[from:], p.text)
		if found < 0 {
			return nil
		}
		begin := from + strings.LastIndexByte(program[from:from+found], '\n') + 1
		text := program[begin:]
		if p.whole {
			text, _ = statementOf(text)
		}
		if m := p.form.FindStringSubmatchIndex(text); m != nil {
			for i := range m {
				if m[i] >= 0 {
					m[i] += begin
				}
			}
			return m
		}
		line, _, _ := strings.Cut(program[from+found:], "\n")
		from += found + len(line)
	}
}

// statementOf returns the statement of the main function at the beginning of a text, and what
// follows. A statement lasts until a line begins the next one.
func statementOf(text string) (statement, rest string) {
	for end := 0; ; end++ {
		newline := strings.IndexByte(text[end:], '\n')
		if newline < 0 {
			return text, ""
		}
		end += newline
		if rest := text[end+1:]; strings.HasPrefix(rest, "    %") || strings.HasPrefix(rest, `    "stablehlo.return"`) {
			return text[:end], rest
		}
	}
}

// places returns the indices of all matches, and of their submatches.
func (p pattern) places(program string) (all [][]int) {
	for at := p.find(program, 0); at != nil; at = p.find(program, at[1]) {
		all = append(all, at)
	}
	return all
}

// all returns the submatches of all matches.
func (p pattern) all(program string) (all [][]string) {
	for _, at := range p.places(program) {
		all = append(all, submatches(program, at))
	}
	return all
}

// replace replaces the matches for which with returns another text, and returns how many.
func (p pattern) replace(program string, with func(m []string) (string, bool)) (out string, replaced int) {
	var written strings.Builder
	copied := 0
	for _, at := range p.places(program) {
		if text, ok := with(submatches(program, at)); ok {
			written.WriteString(program[copied:at[0]])
			written.WriteString(text)
			copied = at[1]
			replaced++
		}
	}
	if replaced == 0 {
		return program, 0
	}
	written.WriteString(program[copied:])
	return written.String(), replaced
}

// ofLine returns the submatches of a line, or nil.
func (p pattern) ofLine(line string) []string {
	if !strings.Contains(line, p.text) {
		return nil
	}
	return p.form.FindStringSubmatch(line)
}

// submatches returns the substrings at the indices.
func submatches(text string, indices []int) []string {
	all := make([]string, len(indices)/2)
	for i := range all {
		if indices[2*i] >= 0 {
			all[i] = text[indices[2*i]:indices[2*i+1]]
		}
	}
	return all
}
