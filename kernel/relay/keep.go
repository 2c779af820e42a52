package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gonbatch/kernel/cell"
)

// keepErrors is the file of CellDir in which package keep says what it could not encode.
const keepErrors = "keep-errors"

// notKept is the compiler's message about a kept variable that is not there.
var notKept = regexp.MustCompile(`gonbatch__keep\.go:\d+:\d+: (?:undefined: (\w+)|[^\n]*\b(\w+)\b[^\n]*)`)

// prepareKeep makes the programs of this cell and of later ones keep the variables that it names.
func (e *execution) prepareKeep() {
	r := e.relay
	_ = os.Remove(filepath.Join(r.opts.CellDir, keepErrors))
	if e.prepared.Err != nil {
		return
	}
	for _, line := range strings.Split(e.code, "\n") {
		if strings.TrimSpace(line) == "%reset" {
			r.kept = nil
		}
	}
	for _, change := range e.prepared.Keep {
		switch {
		case len(change.Names) == 0:
			r.publish(e.request, "stream", object{"name": "stdout", "text": "kept: " + strings.Join(r.kept, ", ") + "\n"})
		case change.Drop:
			r.drop(change.Names)
		default:
			r.kept = append(r.kept, change.Names...)
			slices.Sort(r.kept)
			r.kept = slices.Compact(r.kept)
		}
	}
	if err := r.writeKeep(); err != nil {
		r.log(fmt.Errorf("%s: %w", cell.KeepMagic, err))
	}
}

// drop forgets variables, and their values.
func (r *relay) drop(names []string) {
	r.kept = slices.DeleteFunc(r.kept, func(name string) bool { return slices.Contains(names, name) })
	for _, name := range names {
		_ = os.Remove(filepath.Join(r.opts.KeepDir, name+".gob"))
	}
}

// writeKeep writes the Go file that keeps the variables; without any it is removed.
func (r *relay) writeKeep() error {
	if len(r.kept) == 0 {
		if err := os.Remove(r.opts.KeepFile); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(r.opts.KeepFile, []byte(keepSource(r.kept)), 0o600)
}

func keepSource(names []string) string {
	var text strings.Builder
	text.WriteString("// Written by the gonbatch kernel: keeps variables, as %keep asks.\npackage main\n\nimport \"gonbatch/keep\"\n\n")
	text.WriteString("func gonbatch__kept() keep.Vars {\n\treturn keep.Vars{\n")
	for _, name := range names {
		fmt.Fprintf(&text, "\t\t%q: &%s,\n", name, name)
	}
	text.WriteString("\t}\n}\n\nfunc init() { gonbatch__kept().Load() }\n\nfunc gonbatch__save() { gonbatch__kept().Save() }\n")
	return text.String()
}

// keepFailure says why variables could not be kept, or nil. Those that are not there are not kept from now on.
func (e *execution) keepFailure(built string) *failure {
	r := e.relay
	var missing []string
	for _, match := range notKept.FindAllStringSubmatch(built, -1) {
		if name := match[1] + match[2]; slices.Contains(r.kept, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		r.drop(missing)
		if err := r.writeKeep(); err != nil {
			r.log(err)
		}
		name := strings.Join(missing, ", ")
		return e.keepError(fmt.Sprintf("%%keep %s: there is no such package-level variable: declare it outside of main, as var %s TYPE, and %%keep it again", name, missing[0]))
	}
	if text, err := os.ReadFile(filepath.Join(r.opts.CellDir, keepErrors)); err == nil {
		return e.keepError(string(text))
	}
	return nil
}

func (e *execution) keepError(text string) *failure {
	return &failure{"KeepError", text, []string{e.title(0), red + text + plain}}
}
