package modules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

// LockFile returns the path of a notebook's lock: the file next to it that keeps its modules.
func LockFile(notebook string) string { return notebook + ".lock" }

// lock holds the modules and imports found for a notebook.
type lock struct {
	// keys are the keys of the notebooks, or parts of one, for which it was found.
	keys []string
	// diff is the difference from gonbatch's own go.mod, and goSum the lines that gonbatch's own
	// go.sum lacks.
	diff  diff
	goSum []byte
	// imports are as in export.Resolved.
	imports map[string]map[string]string
}

// keptKeys is the maximum number of keys in a lock.
const keptKeys = 8

const lockComment = `The modules and packages that submit has found for %s. Keep this file with the notebook. Delete it
to get the newest versions.
`

// checksumPart is the last part of a lock: the hash of everything before it.
const checksumPart = "checksum"

// readLock reads a lock; nil if there is none.
func readLock(path string) (*lock, error) {
	data, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l := parseLock(path, bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
	if l == nil {
		return nil, fmt.Errorf("%s is damaged, or was edited: restore it from version control, or delete it to get the newest versions of the notebook's modules", path)
	}
	return l, nil
}

// checked returns the parts of a lock; nil if its checksum is wrong.
func checked(data []byte) []txtar.File {
	mark := []byte("-- " + checksumPart + " --\n")
	at := bytes.LastIndex(data, mark)
	if at < 0 || string(bytes.TrimSpace(data[at+len(mark):])) != checksum(data[:at]) {
		return nil
	}
	return txtar.Parse(data[:at]).Files
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// parseLock parses a lock; it returns nil if the lock is damaged.
func parseLock(path string, data []byte) *lock {
	l := &lock{imports: map[string]map[string]string{}}
	for _, file := range checked(data) {
		var err error
		switch file.Name {
		case "keys":
			l.keys = strings.Fields(string(file.Data))
		case "go.mod":
			if l.diff.mod, err = modfile.Parse(path, file.Data, nil); err != nil {
				return nil
			}
		case "dropped":
			l.diff.dropped = strings.Fields(string(file.Data))
		case "go.sum":
			l.goSum = file.Data
		case "imports":
			for line := range strings.Lines(string(file.Data)) {
				if words := strings.Fields(line); len(words) == 3 { // a cell, a name and an import path
					addImport(l.imports, words[0], words[1], words[2])
				}
			}
		}
	}
	if l.diff.mod == nil {
		return nil
	}
	return l
}

func addImport(imports map[string]map[string]string, cell, name, path string) {
	if imports[cell] == nil {
		imports[cell] = map[string]string{}
	}
	imports[cell][name] = path
}

// writeLock writes the lock, unless it is unchanged.
func (r *resolver) writeLock(d diff) error {
	now := &lock{
		diff: d, imports: r.imports, goSum: withoutSums(r.module.Files["go.sum"], r.first.Files["go.sum"]),
		keys: []string{r.key(d.mod)},
	}
	notebook := strings.TrimSuffix(filepath.Base(r.Lock), LockFile(""))
	if before := r.lock; before != nil {
		found := before.text(notebook)
		others := slices.DeleteFunc(slices.Clone(before.keys), func(k string) bool { return k == now.keys[0] })
		if before.keys = now.keys; bytes.Equal(before.text(notebook), now.text(notebook)) {
			now.keys = append(now.keys, others...)
			now.keys = now.keys[:min(len(now.keys), keptKeys)]
		}
		if bytes.Equal(found, now.text(notebook)) {
			return nil
		}
	}
	return rundir.WriteFileAtomic(r.Lock, now.text(notebook), 0o644)
}

// text returns the lock's file, without empty parts.
func (l *lock) text(notebook string) []byte {
	archive := &txtar.Archive{Comment: fmt.Appendf(nil, lockComment, notebook)}
	for _, part := range []struct{ name, text string }{
		{"go.mod", string(modfile.Format(l.diff.mod.Syntax))},
		{"dropped", lines(l.diff.dropped)},
		{"go.sum", string(l.goSum)},
		{"imports", importLines(l.imports)},
		{"keys", lines(l.keys)},
	} {
		if part.text != "" {
			archive.Files = append(archive.Files, txtar.File{Name: part.name, Data: []byte(part.text)})
		}
	}
	text := txtar.Format(archive)
	return fmt.Appendf(text, "-- %s --\n%s\n", checksumPart, checksum(text))
}

// lines returns the words, one on each line.
func lines(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, "\n") + "\n"
}

// importLines returns the found imports, one on each line.
func importLines(imports map[string]map[string]string) string {
	var text strings.Builder
	for _, cell := range slices.Sorted(maps.Keys(imports)) {
		for _, name := range slices.Sorted(maps.Keys(imports[cell])) {
			fmt.Fprintln(&text, cell, name, imports[cell][name])
		}
	}
	return text.String()
}

// withoutSums returns the lines of a go.sum that another one lacks.
func withoutSums(sum, without []byte) []byte {
	known := map[string]bool{}
	for line := range strings.Lines(string(without)) {
		known[line] = true
	}
	var text strings.Builder
	for line := range strings.Lines(string(sum)) {
		if !known[line] {
			text.WriteString(line)
		}
	}
	return []byte(text.String())
}

// variable matches a variable in a shell command.
var variable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// key returns the hash of everything that determines the modules: gonbatch's own modules, the
// programs' imports and missing names, the notebook's commands, and the go.mod of folders that
// replace modules in mod.
func (r *resolver) key(mod *modfile.File) string {
	sum := sha256.New()
	for _, require := range r.own.Require {
		fmt.Fprintf(sum, "own %s\n", require.Mod)
	}
	for _, path := range r.first.Imports {
		if !gocell.IsStandard(path) {
			fmt.Fprintf(sum, "import %s\n", path)
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(r.first.Open)) {
		fmt.Fprintf(sum, "open %s %q\n", cell, r.first.Open[cell])
	}
	for _, command := range r.first.Commands {
		fmt.Fprintf(sum, "command %q\n", command.Text)
		for _, name := range variable.FindAllStringSubmatch(command.Text, -1) {
			fmt.Fprintf(sum, "%q\n", r.kernelVariable(command, name[1]))
		}
	}
	for _, replace := range mod.Replace {
		if replace.New.Version == "" && replace.Old.Path != gomodule.OwnPath {
			text, err := os.ReadFile(filepath.Join(replace.New.Path, "go.mod"))
			fmt.Fprintf(sum, "folder %s %q %v\n", replace.New.Path, text, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// kernelVariable returns the value of a variable in a command's environment in the kernel.
func (r *resolver) kernelVariable(command *export.ModuleCommand, name string) string {
	value := ""
	for _, entry := range r.kernelEnviron(command) {
		if v, ok := strings.CutPrefix(entry, name+"="); ok && name != tmpDirVariable {
			value = v
		}
	}
	return value
}
