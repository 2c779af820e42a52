package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/build"
	"gonbatch/kernel/relay"
)

// training is a run of a cell's program that may train. Its place depends on the code, the working
// folder, the arguments, the variables set by %env, and the kept values that the program reads.
type training struct {
	// base is the place without the kept values, and uses are the names that the program needs.
	base string
	uses []string
	// keepDir has the kept values, and sums is a file for their hashes.
	keepDir, sums string
	// trains is set if the program is known to train.
	trains bool
}

// ended is a note that a training run leaves next to its place: if a training run has itself
// changed kept values, such as the model's, it is still the same one when it runs again.
type ended struct {
	Place string `json:"place"`
	// Kept is the hash of the kept values when the training ended.
	Kept string `json:"kept"`
}

// newTraining reads what is known about a cell's program; it returns nil for other commands.
func newTraining(command []string, cellDir string, environ environment) *training {
	program := slices.IndexFunc(command, func(word string) bool { return strings.HasSuffix(word, build.ProgramSuffix) })
	built, err := build.ReadTraining(cellDir)
	dir, dirErr := os.Getwd()
	if err != nil || dirErr != nil || program < 0 || program > 1 {
		return nil
	}
	text := fmt.Sprintf("%q %q", dir, command[program+1:])
	for _, name := range relay.Environ(cellDir) {
		text += fmt.Sprintf(" %s=%q", name, environ.get(name))
	}
	sum := sha256.Sum256([]byte(text))
	return &training{base: built.Place + "-" + hex.EncodeToString(sum[:4]), uses: built.Uses, keepDir: environ.get(rundir.EnvKeepDir), sums: filepath.Join(cellDir, sumsFile), trains: built.Trains}
}

// variable returns the variable that gives the program its place for checkpoints. If no checkpoints
// can be written, the program trains without them, and variable prints a warning.
func (t *training) variable(warn io.Writer) []string {
	if t == nil {
		return nil
	}
	if err := writable(filepath.Dir(t.base)); err != nil {
		if t.trains {
			fmt.Fprintf(warn, "no checkpoints, so an interrupted training run can't be resumed: %v: set %s to a folder that you can write to, and restart the kernel\n", err, rundir.EnvCheckpoints)
		}
		return []string{rundir.EnvCheckpoints + "="}
	}
	return []string{rundir.EnvCheckpoints + "=" + t.place()}
}

func (t *training) place() string {
	kept := t.kept()
	var last ended
	if text, err := os.ReadFile(t.noteFile()); err == nil && json.Unmarshal(text, &last) == nil && last.Kept == kept {
		return last.Place
	}
	if kept == "" {
		return t.base
	}
	return t.base + "-" + kept
}

// note records the kept values after the program, which ran with the variable.
func (t *training) note(variable []string) {
	if t == nil || len(variable) == 0 {
		return
	}
	kept := t.kept()
	if kept == "" {
		return
	}
	place := strings.TrimPrefix(variable[0], rundir.EnvCheckpoints+"=")
	if _, err := os.Stat(place); err != nil {
		return // It has not trained.
	}
	if text, err := json.Marshal(ended{place, kept}); err == nil {
		_ = os.WriteFile(t.noteFile(), text, 0o600) // Without the note, the training starts over.
	}
}

func (t *training) noteFile() string { return t.base + ".json" }

// kept returns a hash of the kept values that the program reads; "" if there are none.
func (t *training) kept() string {
	sum, some := sha256.New(), false
	files := readSums(t.sums)
	for _, name := range t.uses {
		for rank := 0; t.keepDir != ""; rank++ {
			file := rundir.KeptValue(t.keepDir, name, rank)
			content, err := files.of(file)
			if err != nil {
				break
			}
			fmt.Fprintf(sum, "%q %s ", filepath.Base(file), content)
			some = true
		}
	}
	if !some {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// writable returns an error if no folders can be created in a folder.
func writable(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return &fs.PathError{Op: "write to", Path: folder, Err: err}
	}
	return nil
}
