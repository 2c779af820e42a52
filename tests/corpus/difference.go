package corpus

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Difference is a cell that is ok in GoNB but differs on another side.
type Difference struct {
	Cell int
	// Where is "kernel", "check" or "local".
	Where string
	What  string
	// Output means that the cell is ok there too, but writes or shows something else.
	Output bool
}

// String says what differs.
func (d Difference) String() string { return fmt.Sprintf("cell %d, %s: %s", d.Cell, d.Where, d.What) }

// differences returns the differences between a side and GoNB, in the order of the cells, without
// the cells that skip reports.
func differences(where string, gonb, got cells, mask []Pattern, skip func(number int) bool) (all []Difference) {
	for _, number := range slices.Sorted(maps.Keys(gonb)) {
		want := gonb[number]
		if want.Status != OK || skip != nil && skip(number) {
			continue
		}
		have, ok := got[number]
		if !ok {
			have = Cell{Number: number, Status: NotRun}
		}
		d := Difference{Cell: number, Where: where}
		if have.Status != OK {
			d.What = fmt.Sprintf("%s: %s", have.Status, Brief(have.Error+"\n"+have.Stderr))
			all = append(all, d)
		} else if d.What = outputDifference(want, have, mask); d.What != "" {
			d.Output = true
			all = append(all, d)
		}
	}
	return all
}

// outputDifference returns the first difference between what two cells write and show.
func outputDifference(want, have Cell, mask []Pattern) string {
	for _, part := range []struct{ name, want, have string }{
		{"standard output", want.Stdout, have.Stdout}, {"standard error", want.Stderr, have.Stderr}, {"display", want.Rich, have.Rich},
	} {
		if part.name == "display" && part.want == "" {
			continue // GoNB sometimes loses what a program shows last.
		}
		wanted, had := strings.Split(settled(part.want, mask), "\n"), strings.Split(settled(part.have, mask), "\n")
		for i := range max(len(wanted), len(had)) {
			a, b := lineAt(wanted, i), lineAt(had, i)
			if a != b {
				return fmt.Sprintf("%s, line %d: GoNB %q, here %q", part.name, i+1, short(a), short(b))
			}
		}
	}
	return ""
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// These match what differs from run to run in any notebook.
var (
	overwritten = regexp.MustCompile(`(?m)^[^\n]*\r([^\r\n])`)
	escape      = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)
	anyTime     = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|μs|us|ms|s|m|h)\b|\d\d:\d\d:\d\d(\.\d+)?|\d{4}[-/]\d\d[-/]\d\d`)
	temporary   = regexp.MustCompile(`/tmp/[^\s"'):]+`)
	module      = regexp.MustCompile(`\bgonb_[0-9a-f]{8}\b`)
	address     = regexp.MustCompile(`\b0x[0-9a-f]{4,}\b|\bc000[0-9a-f]{6}\b`)
)

// settled returns a string without what differs from run to run, and without what was overwritten.
func settled(text string, mask []Pattern) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = overwritten.ReplaceAllString(text, "$1")
	for _, r := range []*regexp.Regexp{escape, anyTime, temporary, module, address} {
		text = r.ReplaceAllString(text, "~")
	}
	for _, m := range mask {
		text = m.ReplaceAllString(text, "~")
	}
	return strings.TrimRight(text, "\n ")
}

// Brief returns the first lines of a message.
func Brief(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(len(lines), 4)], "\n    ")
}

func short(line string) string {
	const limit = 160
	if len(line) > limit {
		return line[:limit] + "..."
	}
	return line
}
