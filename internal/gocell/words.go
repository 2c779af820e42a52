package gocell

import "strings"

// split splits a magic's line into words at spaces and tabs. Double quotes preserve spaces, and can
// make an empty word. Inside quotes, a backslash takes the next character literally, except that \n
// and \t are newline and tab. Outside quotes, a backslash is an ordinary character. These are
// GoNB's rules, not a shell's.
func split(line string) []string {
	var words []string
	var word strings.Builder
	started, quoted, escaped := false, false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(unescape(r))
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
			started = true
		case !quoted && (r == ' ' || r == '\t' || r == '\n'):
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// unescape returns the character that a backslash before r stands for.
func unescape(r rune) rune {
	switch r {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	}
	return r
}
