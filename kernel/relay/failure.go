package relay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gonbatch/kernel/cell"
	"gonbatch/kernel/wire"
)

// failure is why a cell failed.
type failure struct {
	name, value string
	traceback   []string
}

// problemLength is the maximum length of a failure's line.
const problemLength = 120

// line returns the failure in one line; "" for nil.
func (f *failure) line() string {
	if f == nil {
		return ""
	}
	text, _, _ := strings.Cut(strings.TrimSpace(f.value), "\n")
	if runes := []rune(text); len(runes) > problemLength {
		text = string(runes[:problemLength]) + " ..."
	}
	return text
}

const red, plain = "\x1b[31m", "\x1b[0m"

// content is the content of an error message, or of a reply with a status.
func (f failure) content(status string) object {
	content := object{"ename": f.name, "evalue": f.value, "traceback": f.traceback}
	if status != "" {
		content["status"] = status
	}
	return content
}

// failure returns why the cell failed, or nil.
func (e *execution) failure(reply *wire.Message) *failure {
	ended := e.relay.endedCommands()
	switch {
	case e.prepared.Err != nil:
		return &failure{"MagicError", e.prepared.Err.Error(), []string{e.title(0), red + e.prepared.Err.Error() + plain}}
	case e.relay.interrupted.Load():
		return &failure{"Interrupted", "the cell was interrupted", []string{e.title(0), red + "the cell was interrupted" + plain}}
	}
	var content gonbReply
	if err := json.Unmarshal(reply.Content, &content); err != nil {
		return &failure{"ProtocolError", "GoNB's reply: " + err.Error(), []string{err.Error()}}
	}
	f := e.programFailure(content).withRoomRemedy(e.relay)
	if kept := e.keepFailure(content.Value); kept != nil && (f == nil || f.name != "panic") {
		return kept
	}
	if f != nil {
		return f
	}
	return e.commandFailure(ended)
}

// gonbReply is GoNB's reply to a cell. Value has the compiler's messages, if it failed.
type gonbReply struct {
	Status    string   `json:"status"`
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// programFailure returns GoNB's own error: a compiler's message, or the exit status of the program.
func (e *execution) programFailure(content gonbReply) *failure {
	if content.Status == "ok" {
		return nil
	}
	f := &failure{content.Name, cell.CleanMarks(content.Value), []string{e.title(0)}}
	for _, text := range content.Traceback {
		f.traceback = append(f.traceback, cell.CleanMarks(text))
	}
	if compiler := e.compilerFailure(f.value, f.traceback[1:]); compiler != nil {
		return compiler
	}
	if remedy := cmp.Or(e.goRemedy(f.value), moduleRemedy(f.value)); remedy != "" {
		f.value = strings.TrimSpace(f.value) + "\n" + remedy
		f.traceback = append(f.traceback, red+remedy+plain)
	}
	if text := strings.TrimSpace(e.namePlaces(e.crash.end())); text != "" {
		// The text has the exit status, which is all that GoNB says.
		f.traceback = append(slices.DeleteFunc(f.traceback, func(line string) bool { return line == f.value && strings.HasSuffix(text, line) }), red+text+plain)
		if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, ": ") {
			f.name, f.value, _ = strings.Cut(markedPlace.ReplaceAllString(first, " $1"), ": ")
		}
	}
	if f.name == gonbError {
		f.value = fmt.Sprintf("cell [%d]: %s", e.count, f.value)
	}
	return f
}

// markedPlace matches a place in a traceback, as namePlaces has marked it.
var markedPlace = regexp.MustCompile(` *\x1b\[7m\[\[ (Cell[^\n]*?) \]\]\x1b\[0m ` + composedFile)

// gonbError is the name of GoNB's errors. They don't say where they happened.
const gonbError = "ERROR"

// title names the cell, and the line if it is known.
func (e *execution) title(line int) string {
	if line == 0 {
		return fmt.Sprintf("Cell [%d]", e.count)
	}
	return fmt.Sprintf("Cell [%d] line %d", e.count, line)
}
