// Command recording runs a command and draws its output as an animated terminal, in an SVG file. To
// recreate the recording in the README, run this in the repository's root:
//
//	go run ./tests/recording docs/images/terminal.svg go run ./cmd/submit --local notebooks/mnist.ipynb
//
// A viewer that doesn't animate shows the end of the output.
package main

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// The size of the terminal in characters, and of a character in pixels.
const (
	columns, rows = 100, 22
	charWidth     = 7.8
	lineHeight    = 18
	margin        = 14
)

// The animation plays faster than the command ran, and shortens pauses.
const (
	speed    = 10
	maxPause = 400 * time.Millisecond
)

// line is a line of output, and when it was printed.
type line struct {
	text string
	at   time.Duration
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: recording FILE.svg COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run(file string, command []string) error {
	lines, err := record(command)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(draw(lines)), 0o644)
}

// record runs a command and returns what a user would see: the command, then its output.
func record(command []string) ([]line, error) {
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	lines := []line{{text: "$ " + strings.Join(command, " ")}}
	cmd := exec.Command(command[0], command[1:]...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		ended <- errors.Join(err, in.Close())
	}()
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		text := strings.ReplaceAll(scanner.Text(), folder, "~/gonbatch")
		lines = append(lines, line{text, time.Since(began)})
	}
	return lines, <-ended
}

// draw returns an SVG of the lines. Without animation it shows the last ones.
func draw(lines []line) string {
	lines = wrap(faster(lines))
	var b strings.Builder
	width, height := int(columns*charWidth)+2*margin, rows*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d">
<style>
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dce2; white-space: pre; animation: show 1ms both; }
.command { fill: #8fd18f; }
@keyframes show { from { opacity: 0; } }
%s</style>
<rect width="%[1]d" height="%[2]d" rx="8" fill="#1c2128"/>
<svg x="%[4]d" y="%[4]d" width="%[5]d" height="%[6]d"><g class="page">
`, width, height, scrolling(lines), margin, width-2*margin, height-2*margin)
	for i, l := range lines {
		class := ""
		if i == 0 {
			class = ` class="command"`
		}
		fmt.Fprintf(&b, `<text x="0" y="%d"%s style="animation-delay:%dms" xml:space="preserve">%s</text>`+"\n",
			i*lineHeight+13, class, l.at.Milliseconds(), escaped(l.text))
	}
	b.WriteString("</g></svg>\n</svg>\n")
	return b.String()
}

// faster returns the lines with the times of the animation.
func faster(lines []line) []line {
	var played []line
	var before, now time.Duration
	for _, l := range lines {
		now += min((l.at-before)/speed, maxPause)
		before = l.at
		played = append(played, line{l.text, now})
	}
	return played
}

// scrolling moves the page up by a line for each line that does not fit.
func scrolling(lines []line) string {
	if len(lines) <= rows {
		return ""
	}
	var frames strings.Builder
	duration := lines[len(lines)-1].at
	frames.WriteString("0% { transform: none; }\n")
	for i, l := range lines[rows:] {
		percent := 100 * float64(l.at) / float64(duration)
		fmt.Fprintf(&frames, "%.3f%% { transform: translateY(%dpx); }\n", percent, -(i+1)*lineHeight)
	}
	return fmt.Sprintf(".page { transform: translateY(%dpx); animation: scroll %dms step-end both; }\n@keyframes scroll {\n%s}\n",
		-(len(lines)-rows)*lineHeight, duration.Milliseconds(), frames.String())
}

// wrap breaks lines that are wider than the terminal.
func wrap(lines []line) []line {
	var all []line
	for _, l := range lines {
		for part := range slices.Chunk([]rune(l.text), columns) {
			all = append(all, line{string(part), l.at})
		}
		if l.text == "" {
			all = append(all, l)
		}
	}
	return all
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // A strings.Builder never fails.
	return b.String()
}
