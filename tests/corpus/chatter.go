package corpus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// chatter matches the lines that GoNB adds to a cell's output about itself.
var chatter = regexp.MustCompile(`(?m)^(` + strings.Join([]string{
	`Set: \w+=".*"`,                               // %env
	`Changed directory to ".*"`,                   // %cd
	`Current directory: ".*"`,                     // %cd
	`%goflags=\[.*\]`,                             // %goflags
	`\* State reset: .*`,                          // %reset
	`\. removed \w+ \S+`,                          // %rm
	`\. key ".*" not found in any definition, .*`, // %rm
	`\s*- Added replace rule for module .*`,       // %goworkfix
	`\s*- Replace rule for module .*`,             // %goworkfix
	`No "use" fields in "go\.work".*`,             // %goworkfix
}, "|") + `)\n`)

// ending matches the line that GoNB writes after a program or command that failed.
var ending = regexp.MustCompile(`(?m)^?(exit status (\d+)|signal: \w+)\n$`)

// exitCode removes GoNB's own last line from a cell's standard error, and returns the exit code in
// it.
func exitCode(stderr string) (rest string, code int) {
	at := ending.FindStringSubmatchIndex(stderr)
	if at == nil {
		return stderr, 0
	}
	if at[4] >= 0 {
		code, _ = strconv.Atoi(stderr[at[4]:at[5]])
	}
	return stderr[:at[0]], code
}

// quiet removes what GoNB says about itself from a cell's output.
func quiet(cell Cell) Cell {
	cell.Stdout = chatter.ReplaceAllString(cell.Stdout, "")
	cell.Stderr = chatter.ReplaceAllString(cell.Stderr, "")
	cell.Stderr, cell.Code = exitCode(cell.Stderr)
	return cell
}

// These match what differs from run to run.
var (
	goroutine  = regexp.MustCompile(`goroutine \d+( gp=\S+ m=\S+( mp=\S+)?)? \[`)
	testTime   = regexp.MustCompile(`\(\d+\.\d\ds\)`)
	programDir = regexp.MustCompile(`Usage of \S+:`)
	kernelDir  = regexp.MustCompile(`/tmp/gonb_[0-9a-f]+`)
)

// A frame is a line of a stack trace that names a place. GoNB's begins with the execution of the
// cell; ours has the cell in the name of its file.
var (
	gonbFrame = regexp.MustCompile(`^\t \x1b\[7m\[\[ Cell \[(\d+)\] Line (\d+) \]\]\x1b\[0m .*/main(?:_test)?\.go:\d+`)
	ourFrame  = regexp.MustCompile(`^\t\S*\.ipynb\[cell (\d+)\]:(\d+)`)
)

// stable removes what differs from run to run from a string. Stack traces become the cells and
// lines that they go through; executions maps GoNB's executions to cells.
func stable(text string, executions []int) string {
	text = testTime.ReplaceAllString(programDir.ReplaceAllString(text, "Usage of PROGRAM:"), "(0.00s)")
	text = kernelDir.ReplaceAllString(text, "/tmp/gonb")
	var out []string
	inTrace := false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case goroutine.MatchString(line):
			inTrace = true
			out = append(out, goroutine.ReplaceAllString(line, "goroutine ["))
		case inTrace && line == "":
			inTrace = false
			out = append(out, line)
		case inTrace:
			if place := place(line, executions); place != "" {
				out = append(out, place)
			}
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// place returns the cell and line that a line of a stack trace names, or "".
func place(line string, executions []int) string {
	if m := ourFrame.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("\tcell %s line %s", m[1], m[2])
	}
	m := gonbFrame.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	execution, _ := strconv.Atoi(m[1])
	if execution < 1 || execution > len(executions) {
		return fmt.Sprintf("\texecution %d line %s", execution, m[2])
	}
	return fmt.Sprintf("\tcell %d line %s", executions[execution-1], m[2])
}
