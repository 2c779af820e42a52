package script

import (
	"fmt"
	"regexp"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

// Line returns the lines that run a ! line as GoNB does.
func Line(command string) string {
	return shellescape.QuoteCommand([]string{"/bin/bash", "-c", command}) + "\n"
}

// Feed returns the lines that run a command with a string as its input.
func Feed(command []string, text string) string {
	return shellescape.QuoteCommand(command) + hereDocument(text)
}

// WriteTo returns the lines that write a string to a file, or append it.
func WriteTo(file string, add bool, text string) string {
	to, done := ">", "written"
	if add {
		to, done = ">>", "appended"
	}
	path := filePath(file)
	return fmt.Sprintf("cat %s %s%s[ $? -eq 0 ] && printf 'Cell contents %s to \"%%s\".\\n' %s >&2\n", to, path, hereDocument(text), done, path)
}

// hereDocument passes a string unchanged to the input of the command before it.
func hereDocument(text string) string {
	end := "END_OF_CELL"
	for strings.Contains("\n"+text, "\n"+end+"\n") {
		end += "_"
	}
	return " << '" + end + "'\n" + text + end + "\n"
}

// pathVariable matches an environment variable in a file name.
var pathVariable = regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)`)

// filePath quotes a file name for a script: "~" and variables expand, as in GoNB, and nothing else.
func filePath(file string) string {
	out := ""
	if file == "~" || strings.HasPrefix(file, "~/") {
		out, file = `"$HOME"`, file[1:]
	}
	for file != "" {
		at := pathVariable.FindStringIndex(file)
		if at == nil {
			return out + shellescape.Quote(file)
		}
		if at[0] > 0 {
			out += shellescape.Quote(file[:at[0]])
		}
		out += `"` + file[at[0]:at[1]] + `"`
		file = file[at[1]:]
	}
	return out
}
