package stage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// WriteModule writes the notebook as a Go module.
func (n Notebook) WriteModule(ctx context.Context, shell submit.Shell, folder string) (report.Export, error) {
	exported := report.Export{Folder: folder}
	module, err := n.Export(ctx, shell)
	if err == nil {
		module, err = n.resolve(ctx, shell, module)
	}
	if err != nil {
		return exported, err
	}
	for _, cell := range module.Cells {
		exported.Commands = append(exported.Commands, howToRun(folder, cell))
	}
	return exported, module.Write(folder)
}

// howToRun returns the command that runs a cell of the module in a folder, with the cell's
// variables, build flags and arguments.
func howToRun(folder string, cell rundir.Cell) string {
	var words []string
	for _, v := range rundir.SortedVars(cell.Env) {
		words = append(words, v.Name+"="+shellescape.Quote(v.Value))
	}
	if cell.Shell {
		return strings.Join(append(words, "bash", shellescape.Quote(filepath.Join(folder, cell.Script()))), " ")
	}
	verb := "run"
	if cell.Test {
		verb = "test"
	}
	command := slices.Concat([]string{"go", verb}, cell.BuildFlags, []string{"./" + cell.Name}, cell.Args)
	return fmt.Sprintf("cd %s && %s", shellescape.Quote(folder), strings.Join(append(words, shellescape.QuoteCommand(command)), " "))
}

// WriteScript writes the notebook's only program as one file, or reports its source if file is "".
func (n Notebook) WriteScript(ctx context.Context, shell submit.Shell, file string) (report.Script, error) {
	script := report.Script{File: file}
	n.Script = true
	module, err := n.Export(ctx, shell)
	if err == nil {
		module, err = n.resolve(ctx, shell, module)
	}
	if err != nil {
		return script, err
	}
	if file == "" {
		script.Source = string(module.Script())
		return script, nil
	}
	return script, rundir.WriteFileAtomic(file, module.Script(), 0o644)
}
