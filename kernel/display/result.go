package display

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/internal/unread"
)

// ResultFile is the name of the file in the folder rundir.EnvCellDir with the cell's result: a
// Bundle as JSON.
const ResultFile = "result.json"

// Result shows values as the result of the cell. A later call replaces an earlier one. Several
// values are the results of a call: nil values, and a last one that is a nil error, are left out.
// In a job, Result prints the value's text, and executed.ipynb shows its other formats. It panics
// with an error of a trainer or of package distributed at which nobody has looked.
func Result(values ...any) {
	values = worthShowing(values)
	if len(values) == 0 {
		return
	}
	if err, ok := values[len(values)-1].(error); ok && unread.Is(err) {
		panic(err)
	}
	bundle := Bundle{Text: textOf(values)}
	if len(values) == 1 {
		bundle = Of(values[0])
	}
	dir := os.Getenv(rundir.EnvCellDir)
	if dir == "" {
		showInJob(bundle)
		return
	}
	writeOrSay(filepath.Join(dir, ResultFile), bundle)
}

// showInJob prints a result's text to the job's log, and leaves its other formats to the executed
// notebook.
func showInJob(bundle Bundle) {
	_, _ = fmt.Fprintln(os.Stdout, bundle[Text])
	file := os.Getenv(rundir.EnvResult)
	if file == "" {
		return
	}
	if len(bundle) == 1 { // The text is there.
		_ = os.Remove(file) // Of an earlier call.
		return
	}
	writeOrSay(file, bundle)
}

func writeOrSay(file string, bundle Bundle) {
	if err := write(file, bundle); err != nil {
		fmt.Fprintln(os.Stderr, "the cell's result cannot be shown:", err)
	}
}

// worthShowing leaves out nil values, including nil errors.
func worthShowing(values []any) []any {
	return slices.DeleteFunc(slices.Clone(values), func(value any) bool {
		v := reflect.ValueOf(value)
		return value == nil || v.Kind() == reflect.Pointer && v.IsNil()
	})
}

func textOf(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Short(v)
	}
	return strings.Join(texts, "\n")
}

// write writes the file atomically: the kernel may read it while the program is being killed.
func write(name string, bundle Bundle) error {
	text, err := json.Marshal(bundle)
	if err != nil {
		return err
	}
	temporary := name + ".new"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
