package gocell

import "regexp"

// remedies say what to do about messages of Go's compiler; the first match counts. Both the message
// and the line must match.
var remedies = []struct {
	message, line *regexp.Regexp
	remedy        string
}{
	{foundMark, regexp.MustCompile(`^\s*[%!]\s*$`), "; a % or a ! alone does nothing: remove it, or write a magic or a shell command"},
	{foundMark, regexp.MustCompile(`^\s+%`), "; a magic stands at the beginning of its line: remove the space before the %"},
	{foundMark, regexp.MustCompile(`^\s+!`), "; a shell command stands at the beginning of its line: remove the space before the !"},
	{foundMark, anyLine, ""},
	{regexp.MustCompile(`^expected declaration, found ([^']|'[^}\])])`), anyLine, "; statements need a main: put a line %% above them"},
	{regexp.MustCompile(`^expected statement, found 'import'`), anyLine, "; imports stand above the line %%"},
	{regexp.MustCompile(`^expected '\(', found \w`), regexp.MustCompile(`^\s*func\s+\w`), "; functions stand above the line %%; below it, write NAME := func"},
	{regexp.MustCompile(`^expected ';', found `), regexp.MustCompile(`^\s*func\s*\(.*\)\s*\w+\s*\(`), "; methods stand above the line %%"},
	{regexp.MustCompile(`^illegal character U\+0023`), anyLine, "; comments begin with //; if the cell is for another kernel, as in Colab, tag it notebook-only"},
	{regexp.MustCompile(`^method \w+\.\w+ already declared`), anyLine, "; if its receiver had other names for the type parameters before, use these, or forget the earlier method by %rm TYPE[OLD NAMES]~METHOD: %ls lists it"},
	{regexp.MustCompile(`^illegal (byte order mark|character U\+[0-9A-F]+$)`), anyLine, "; it is invisible: delete it, or replace it with a space"},
}

var (
	anyLine    = regexp.MustCompile("")
	moreErrors = regexp.MustCompile(` \(and \d+ more errors\)$`)
	foundMark  = regexp.MustCompile(`^expected \w+, found '[%!]'`)
)

// Remedy returns what to do about a message of Go's compiler about a line of a cell; "" if nothing
// is known, or the message says so itself.
func Remedy(message, line string) string {
	message = moreErrors.ReplaceAllString(message, "")
	for _, r := range remedies {
		if r.message.MatchString(message) && r.line.MatchString(line) {
			return r.remedy
		}
	}
	return ""
}
