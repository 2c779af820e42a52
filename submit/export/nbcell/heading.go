package nbcell

import (
	"regexp"
	"strings"
)

// headingLine matches a Markdown heading.
var headingLine = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$`)

// Heading returns the text of a line that is a Markdown heading, and "" for any other line.
func Heading(line string) string {
	if m := headingLine.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// lastHeading returns the last heading of a Markdown text, ignoring code fences.
func lastHeading(text string) string {
	heading, fenced := "", false
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if h := Heading(strings.TrimRight(line, "\r")); h != "" && !fenced {
			heading = Printable(h)
		}
	}
	return heading
}
