package relay

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// compilerLine matches a message of the compiler about the file that GoNB composes.
var compilerLine = regexp.MustCompile(`(?m)^(?:\./|/\S*/)?main(?:_test)?\.go:\d+:\d+: (.*)$`)

// composedPlace matches a place in that file at the end of a message, which means nothing to the
// user.
var composedPlace = regexp.MustCompile(` at \S*main\.go[: ]\d+:\d+$`)

// cellLine matches GoNB's name of a place in a cell.
var cellLine = regexp.MustCompile(`^Cell(?:\[(\d+)\]:)? Line (\d+)\n`)

// compilerFailure turns the compiler's messages in GoNB's error into one failure; it returns nil if
// there are none. The messages' places in the composed file mean nothing to the user, but GoNB says
// which lines of cells they are.
func (e *execution) compilerFailure(value string, parts []string) *failure {
	if !compilerLine.MatchString(value) {
		return nil
	}
	f := &failure{name: "CompileError"}
	var messages []string
	for _, part := range parts {
		place := cellLine.FindStringSubmatch(part)
		if place == nil {
			continue
		}
		context, message := lastLineOf(strings.TrimRight(part[len(place[0]):], "\n"))
		message = composedPlace.ReplaceAllString(message, "")
		number, _ := strconv.Atoi(place[1]) // 0 for this cell
		number = cmp.Or(number, e.count)
		line, _ := strconv.Atoi(place[2])
		message += e.remedy(message, e.lineOf(number, line))
		title, name := e.title(line), fmt.Sprint("line ", line)
		if number != e.count { // GoNB's number of a cell equals the relay's unless some cells were not stored.
			title, name = fmt.Sprintf("Cell [%d] line %d", number, line), fmt.Sprintf("cell [%d] line %d", number, line)
		}
		messages = append(messages, name+": "+message)
		f.traceback = append(f.traceback, title, strings.TrimRight(context, "\n"), red+message+plain)
	}
	if len(messages) == 0 {
		for _, match := range compilerLine.FindAllStringSubmatch(value, -1) {
			messages = append(messages, fmt.Sprintf("cell [%d]: %s", e.count, composedPlace.ReplaceAllString(match[1], "")))
		}
		f.traceback = append([]string{e.title(0)}, parts...)
	}
	f.value = strings.Join(messages, "\n")
	return f
}

// lastLineOf splits a string into its last line and what precedes it.
func lastLineOf(text string) (before, last string) {
	at := strings.LastIndex(text, "\n")
	return text[:max(at, 0)], text[at+1:]
}
