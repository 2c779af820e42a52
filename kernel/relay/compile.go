package relay

import (
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
		message += e.remedy(message, e.lineOf(place[1], place[2]))
		messages = append(messages, e.placeName(place[1], place[2])+": "+message)
		f.traceback = append(f.traceback, e.titleOf(place[1], place[2]), strings.TrimRight(context, "\n"), red+message+plain)
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

// placeName names a place for one line of text: the line, and the cell if it is another one.
func (e *execution) placeName(number, line string) string {
	if number == "" || number == strconv.Itoa(e.count) {
		return "line " + line
	}
	return fmt.Sprintf("cell [%s] line %s", number, line)
}

// lastLineOf splits a string into its last line and what precedes it.
func lastLineOf(text string) (before, last string) {
	at := strings.LastIndex(text, "\n")
	return text[:max(at, 0)], text[at+1:]
}

// titleOf names a place. GoNB's number of a cell equals the relay's unless some cells were not
// stored.
func (e *execution) titleOf(number, line string) string {
	n, err := strconv.Atoi(line)
	if err != nil || number == "" || number == strconv.Itoa(e.count) {
		return e.title(n)
	}
	return fmt.Sprintf("Cell [%s] line %s", number, line)
}
