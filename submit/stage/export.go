package stage

import (
	"context"
	"fmt"
	"path/filepath"

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
		command := fmt.Sprintf("cd %s && go run ./%s", shellescape.Quote(folder), cell.Name)
		if cell.Shell {
			command = "bash " + shellescape.Quote(filepath.Join(folder, cell.Script()))
		}
		exported.Commands = append(exported.Commands, command)
	}
	return exported, module.Write(folder)
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
