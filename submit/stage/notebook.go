package stage

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gonbatch/internal/gomodule"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/source"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/export/input"
)

// Notebook is the notebook of a job, with the options that affect its programs.
type Notebook struct {
	// File is the notebook's file as it was when submit began: if the notebook is saved meanwhile,
	// the run must still have the text from which its programs were compiled.
	File *nbformat.File
	// Of is the notebook that File stands for; "" is File itself. A kernel submits its session as a
	// temporary file.
	Of string
	// Cells are the picked cells; empty means all.
	Cells []string
	// ParamsFile is a YAML file of parameters, "" for none; ParamValues are NAME=VALUE, and win.
	ParamsFile  string
	ParamValues []string
	// Partition is a value of -p without a =, which is taken for a partition.
	Partition string
	// Parameters are the values of the notebook's parameters.
	Parameters map[string]string
	// ParameterPlaces are the places of the values that come from a file.
	ParameterPlaces map[string]string
	// AtRunTime are parameters that get their values when the programs start, where that is
	// possible.
	AtRunTime []string
	// Script asks for one program as one file.
	Script bool
	// SessionMod is the go.mod of the kernel session that submits; "" if none does.
	SessionMod string
	// SessionKept is the folder of the session's values of %keep, with which the job begins; "" if
	// there are none.
	SessionKept string
}

// Open reads the notebook's file at path, and the values of its parameters. Unless a kernel submits
// it, the file's cells are its own.
func (n *Notebook) Open(path string) (err error) {
	if n.Parameters, n.ParameterPlaces, err = parameters(n.ParamsFile, n.ParamValues); err != nil {
		return err
	}
	if n.File, err = nbformat.Load(path); err != nil || n.Of != "" {
		return err
	}
	return n.File.DropOrigin()
}

// Name returns the notebook's name for a job: without the control characters that a file name may
// have.
func (n Notebook) Name() string {
	base := filepath.Base(n.File.Path)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSuffix(base, filepath.Ext(base)))
}

// origin returns the path of the run's notebook.
func (n Notebook) origin() (string, error) { return filepath.Abs(cmp.Or(n.Of, n.File.Path)) }

// Read reads and exports the notebook, with gonbatch's own modules.
func (n Notebook) Read(ctx context.Context, shell submit.Shell) (*export.Module, error) {
	return n.read(ctx, shell, export.Resolved{})
}

// read exports the notebook with its resolved modules.
func (n Notebook) read(ctx context.Context, shell submit.Shell, resolved export.Resolved) (*export.Module, error) {
	nb, err := n.File.Parse()
	if err != nil {
		return nil, err
	}
	sourceDir, err := source.Dir(ctx, source.Options{Getenv: shell.Getenv})
	if err != nil {
		return nil, err
	}
	return export.FromNotebook(nb, export.Options{
		Cells: n.Cells, SourceDir: sourceDir, Parameters: n.Parameters, ParameterPlaces: n.ParameterPlaces, AtRunTime: n.AtRunTime, Script: n.Script,
		ModuleCache: gomodule.CacheDir(shell.Getenv), Resolved: resolved, Kept: n.SessionKept != "",
	})
}

// Export reads and exports the notebook, and shows its warnings.
func (n Notebook) Export(ctx context.Context, shell submit.Shell) (*export.Module, error) {
	module, err := n.Read(ctx, shell)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(module.Parameters, func(p input.Parameter) bool { return n.Partition != "" && p.Name == n.Partition }) {
		return nil, submit.Usagef("-p %s: the notebook's parameter of that name, or a partition? Give -p %[1]s=VALUE or --partition=%[1]s", n.Partition)
	}
	for _, w := range module.Warnings {
		shell.Warn("%s", w)
	}
	return module, nil
}
