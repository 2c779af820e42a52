package relay

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// compilerLine is a message of the compiler about the file that GoNB composes.
var compilerLine = regexp.MustCompile(`(?m)^(?:\./|/\S*/)?main(?:_test)?\.go:\d+:\d+: (.*)$`)

// cellLine is how GoNB names the place in a cell.
var cellLine = regexp.MustCompile(`^Cell(?:\[(\d+)\]:)? Line (\d+)\n`)

// compilerFailure makes one failure of the compiler's messages in GoNB's error; nil if it has none.
// Their places in the file that GoNB composed mean nothing to the user: GoNB says which of them are
// which lines of cells.
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
		message += e.remedy(message)
		messages = append(messages, "line "+place[2]+": "+message)
		f.traceback = append(f.traceback, e.titleOf(place[1], place[2]), strings.TrimRight(context, "\n"), red+message+plain)
	}
	if len(messages) == 0 {
		for _, match := range compilerLine.FindAllStringSubmatch(value, -1) {
			messages = append(messages, match[1])
		}
		f.traceback = append([]string{e.title(0)}, parts...)
	}
	f.value = strings.Join(messages, "\n")
	return f
}

// lastLineOf parts a text into its last line and what stands before it.
func lastLineOf(text string) (before, last string) {
	at := strings.LastIndex(text, "\n")
	return text[:max(at, 0)], text[at+1:]
}

// titleOf names a place; GoNB's number of a cell is the relay's own unless cells were not stored.
func (e *execution) titleOf(number, line string) string {
	n, err := strconv.Atoi(line)
	if err != nil || number == "" || number == strconv.Itoa(e.count) {
		return e.title(n)
	}
	return fmt.Sprintf("Cell [%s] line %s", number, line)
}
