package program

import (
	"strings"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/nbcell"
)

// docComment returns the Markdown directly above the main cell, as part of the program's comment.
func (p Program) docComment() string {
	above := 0
	for _, cell := range p.Cells {
		if cell.Number < p.Cell.Number && cell.Type != nbformat.Markdown {
			above = cell.Number
		}
	}
	text := ""
	for _, cell := range p.Cells {
		if cell.Type == nbformat.Markdown && cell.Number > above && cell.Number < p.Cell.Number {
			text += "//\n" + markdownComment(cell.Source)
		}
	}
	return text
}

// markdown returns the Markdown cells between two cells, each as its own comment. A program that is
// not a script leaves out the Markdown above cells that it doesn't use.
func (p Program) markdown(after, before int) string {
	text, section := "", ""
	inSection := false // A cell with code has followed the section's Markdown.
	for _, cell := range p.Cells {
		if cell.Number <= after || cell.Number >= before {
			continue
		}
		if cell.Type != nbformat.Markdown {
			inSection = inSection || cell.Type == nbformat.Code
			continue
		}
		if inSection {
			if p.Script {
				text += section
			}
			section, inSection = "", false
		}
		section += "\n" + markdownComment(cell.Source)
	}
	return text + section
}

// commentWidth is the length at which lines of Markdown are cut: they may contain whole images.
const commentWidth = 300

// headingMark begins a heading; Go's comments have a single #.
const headingMark = "#"

// markdownComment returns a Markdown text as comment lines.
func markdownComment(source string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(strings.ReplaceAll(source, "\r\n", "\n"))) {
		line = nbcell.Printable(strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \n"))
		if heading := nbcell.Heading(line); heading != "" {
			line = headingMark + " " + heading
		}
		if rest := strings.TrimSpace(line); strings.HasPrefix(rest, "+build") {
			line = `\` + rest // Otherwise Go takes it for a constraint. Markdown ignores the backslash.
		}
		if runes := []rune(line); len(runes) > commentWidth {
			line = string(runes[:commentWidth-3]) + "..."
		}
		if line == "" {
			b.WriteString("//\n")
			continue
		}
		b.WriteString("// " + line + "\n")
	}
	return b.String()
}
