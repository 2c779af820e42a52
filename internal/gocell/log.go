package gocell

import (
	_ "embed" // for the Go file
	"strconv"
	"strings"
)

//go:embed log.go.tmpl
var logSource string

// LogFile is the name of the file for LogSource.
const LogFile = "gonbatch__log.go"

// LogSource returns a Go file for a program that uses package log: it makes a log.Fatal in a helper
// name the lines that called the helper. With places, every logged line names its own place, unless
// the program sets other flags. With saves, log.Fatal saves the variables that the program keeps.
func LogSource(places, saves bool) string {
	flags, keep, save := "", "", ""
	if saves {
		keep = "\n\n\tgonbatch__keep " + strconv.Quote(KeepPackage)
		save = "\n\tif fatal {\n\t\tgonbatch__keep.SaveNow()\n\t}"
	}
	if places {
		flags = "\n\tgonbatch__log.SetFlags(gonbatch__log.LstdFlags | gonbatch__log.Lshortfile) // A line names its cell."
	}
	return strings.NewReplacer("{{flags}}", flags, "{{keep}}", keep, "{{save}}", save).Replace(logSource)
}
