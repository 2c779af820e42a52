package folder

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"gonbatch/internal/rundir"
)

const (
	manifestName = rundir.CheckpointFile
	stepPrefix   = "step-"

	// A folder with one of these prefixes is not a checkpoint, or no longer one.
	savingPrefix   = ".saving-"   // Being written, or replaced by the new one.
	replacedPrefix = ".replaced-" // Stands in for the checkpoint of this step until the new one has its name.
	removingPrefix = ".removing-" // Being removed.
)

// Name returns the name of a step's folder.
func Name(step int64) string { return fmt.Sprintf("%s%08d", stepPrefix, step) }

// stepOf returns the step of a checkpoint's folder; false for any other name.
func stepOf(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, stepPrefix)
	if !ok {
		return 0, false
	}
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, err == nil && step >= 0 && Name(step) == name
}

func aside(root, prefix string, step int64) string { return filepath.Join(root, prefix+Name(step)) }
