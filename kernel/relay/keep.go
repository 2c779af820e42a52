package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
	"gonbatch/kernel/build"
)

// keepErrors is the file in CellDir to which package keep writes its errors.
const keepErrors = "keep-errors"

// notKept matches the compiler's message about a kept variable that doesn't exist, or isn't a
// variable.
var notKept = regexp.MustCompile(`gonbatch__keep\.go:(\d+):\d+: ([^\n]*)`)

// refusedLine matches a line in which package keep names a variable that it could not encode.
var refusedLine = regexp.MustCompile(`(?m)^%keep ([^\s:]+): `)

// prepareKeep makes the programs of this cell and of later ones keep the variables that the cell
// names.
func (e *execution) prepareKeep() {
	r := e.relay
	_ = os.Remove(filepath.Join(r.opts.CellDir, keepErrors))
	_ = os.Remove(rundir.KeptOpen(filepath.Join(r.opts.CellDir, keepErrors)))
	if e.prepared.Err != nil {
		return
	}
	if e.prepared.Reset {
		r.drop(slices.Clone(r.kept))
	}
	r.drop(e.prepared.Removed)
	for _, change := range e.prepared.Keep {
		switch {
		case len(change.Names) == 0:
			e.print(r.keptText())
		case change.Drop:
			for _, name := range change.Names {
				if !slices.Contains(r.kept, name) {
					e.print(fmt.Sprintf("%%keep -d %s: %s is not kept\n", name, name))
				}
			}
			r.drop(change.Names)
		default:
			for _, name := range change.Names {
				if !slices.Contains(r.kept, name) {
					e.newlyKept = append(e.newlyKept, name)
				}
			}
			r.kept = append(r.kept, change.Names...)
			slices.Sort(r.kept)
			r.kept = slices.Compact(r.kept)
		}
	}
	if err := r.writeKeep(); err != nil {
		r.log(fmt.Errorf("%s: %w", gocell.Keep, err))
	}
}

// lastBuild returns when the last program was built; zero if none was.
func (e *execution) lastBuild() time.Time {
	info, err := os.Stat(filepath.Join(e.relay.opts.CellDir, build.BuiltFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// unkeep stops keeping variables, whose values stay.
func (r *relay) unkeep(names []string) {
	r.kept = slices.DeleteFunc(r.kept, func(name string) bool { return slices.Contains(names, name) })
	if err := r.writeKeep(); err != nil {
		r.log(err)
	}
}

func (e *execution) print(text string) {
	e.relay.publish(e.request, "stream", object{"name": "stdout", "text": text})
}

// keptText returns the text that %keep without arguments prints.
func (r *relay) keptText() string {
	if len(r.kept) == 0 {
		return "no variable is kept: %keep x, y keeps the values of x and y for later cells\n"
	}
	return "kept: " + strings.Join(r.keptFiles(), ", ") + "\n"
}

// keptFiles returns the names of the kept variables. If a variable has a kept value, its size
// follows, and when a cell last changed it.
func (r *relay) keptFiles() (all []string) {
	for _, name := range r.kept {
		if info, err := os.Stat(rundir.KeptValue(r.opts.KeepDir, name, 0)); err == nil {
			name = fmt.Sprintf("%s (%s, changed at %s)", name, bytesText(info.Size()-rundir.KeptHeader), info.ModTime().Format(time.DateTime))
		}
		all = append(all, name)
	}
	return all
}

// bytesText formats a number of bytes for people.
func bytesText(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n, " bytes")
	case n < 10_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// drop stops keeping variables, and removes their values.
func (r *relay) drop(names []string) {
	r.kept = slices.DeleteFunc(r.kept, func(name string) bool { return slices.Contains(names, name) })
	for _, name := range names {
		for rank := 0; os.Remove(rundir.KeptValue(r.opts.KeepDir, name, rank)) == nil; {
			rank++
		}
	}
}

// writeKeep writes the Go file that keeps the variables, or removes it if there are none.
func (r *relay) writeKeep() error {
	if len(r.kept) == 0 {
		if err := os.Remove(r.opts.KeepFile); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(r.opts.KeepFile, []byte(keepSource(r.kept)), 0o600)
}

const keepHeader = `// Written by the gonbatch kernel: keeps variables, as %keep asks.
package main

import gonbatch__keep "gonbatch/kernel/keep"

func gonbatch__kept() gonbatch__keep.Vars {
	return gonbatch__keep.Vars{
`

// keepSource returns that file's text: after the header, it has a line for each variable.
func keepSource(names []string) string {
	var text strings.Builder
	text.WriteString(keepHeader)
	for _, name := range names {
		fmt.Fprintf(&text, "\t\t%q: &%s,\n", name, name)
	}
	text.WriteString("\t}\n}\n\nfunc init() { gonbatch__kept().Load(gonbatch__declared) }\n\nfunc gonbatch__begin() func() { return gonbatch__kept().Begin() }\n")
	return text.String()
}

// keepFailure says why variables could not be kept, or returns nil. These variables are no longer
// kept, so that no later cell fails for the same reason.
func (e *execution) keepFailure(built string) *failure {
	r := e.relay
	var reasons, names []string
	for _, match := range notKept.FindAllStringSubmatch(built, -1) {
		line, err := strconv.Atoi(match[1])
		at := line - 1 - strings.Count(keepHeader, "\n")
		if err != nil || at < 0 || at >= len(r.kept) || slices.Contains(names, r.kept[at]) {
			continue
		}
		names = append(names, r.kept[at])
		reasons = append(reasons, e.notVariable(r.kept[at], match[2]))
	}
	if len(names) == 0 {
		reasons, names = r.refusals()
	}
	if len(reasons) == 0 {
		return nil
	}
	r.unkeep(names)
	text := strings.Join(reasons, "\n")
	if places := r.keepers(names); len(places) > 0 {
		text += "\nrequested in " + strings.Join(places, ", ")
	}
	return &failure{"KeepError", text, []string{e.title(0), red + text + plain}}
}

// tellUnsaved warns if the cell's program has ended without saving its variables.
func (e *execution) tellUnsaved() {
	mark := rundir.KeptOpen(filepath.Join(e.relay.opts.CellDir, keepErrors))
	names, err := os.ReadFile(mark)
	if err != nil || os.Remove(mark) != nil {
		return
	}
	e.relay.publish(e.request, "stream", object{"name": "stderr", "text": fmt.Sprintf(
		"%%keep %s: not saved, because the program ended before main returned, or while it was saving: the changes of this cell are lost\n", names)})
}

// notVariable says why a name can't be kept, given the compiler's message.
func (e *execution) notVariable(name, message string) string {
	if elsewhere := e.declaredElsewhere(message); elsewhere != "" {
		return fmt.Sprintf("%%keep %s: %s%s", name, message, elsewhere)
	}
	if strings.HasPrefix(message, "undefined: ") {
		return fmt.Sprintf("%%keep %s: there is no such package-level variable: declare it outside of main, as var %s TYPE, and %%keep it again", name, name)
	}
	return fmt.Sprintf("%%keep %s: %s: only package-level variables can be kept", name, message)
}

// refusals returns the reasons why package keep could not encode variables, and the names of the
// variables that are no longer kept. A variable that already has a kept value stays kept with that
// value, unless it had the value when it was refused before.
func (r *relay) refusals() (reasons, dropped []string) {
	text, err := os.ReadFile(filepath.Join(r.opts.CellDir, keepErrors))
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		match := refusedLine.FindStringSubmatch(line)
		if match == nil {
			reasons = append(reasons, line)
			continue
		}
		name := match[1]
		info, err := os.Stat(rundir.KeptValue(r.opts.KeepDir, name, 0))
		if err == nil && info.ModTime().After(r.refused[name]) {
			r.refused[name] = time.Now()
			reasons = append(reasons, line+"; it keeps the value that it had before this cell")
			continue
		}
		reasons, dropped = append(reasons, line+"; it is not kept from now on"), append(dropped, name)
	}
	return reasons, dropped
}
