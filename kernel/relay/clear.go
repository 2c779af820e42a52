package relay

import "strings"

// clearScreen marks the sequences with which programs clear a terminal's screen, as the command
// clear does.
var clearScreen = strings.NewReplacer("\x1b[H\x1b[2J\x1b[3J", clearMark, "\x1b[H\x1b[J", clearMark, "\x1b[H\x1b[2J", clearMark, "\x1b[2J\x1b[H", clearMark)

const clearMark = "\x00clear\x00"

// clear handles output that clears the screen: clients clear the cell's output and then show the
// rest.
func (e *execution) clear(name, text string) bool {
	if !strings.Contains(text, "\x1b[") {
		return false
	}
	marked := clearScreen.Replace(text)
	at := strings.LastIndex(marked, clearMark)
	if at < 0 {
		return false
	}
	e.relay.publish(e.request, "clear_output", object{"wait": false})
	if rest := marked[at+len(clearMark):]; rest != "" {
		e.relay.publish(e.request, "stream", object{"name": name, "text": rest})
	}
	return true
}
