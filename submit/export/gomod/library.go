// Package gomod prepares the go.mod of an exported notebook before its modules are resolved:
// gonbatch's own requirements, the notebook's commands that change them, and the names of packages.
// It only reads files; submit/modules runs the go command.
//
//	mod, err := gomod.Library(gonbatchSource, "notebook")
//	files, err := gomod.Files(mod, gonbatchSource) // go.mod, go.sum
//	line := gomod.ReadLine("go get example.com/m@v1.2.3") // line.Changes is true
package gomod

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gomodule"
)

// GoMLX begins the import paths of GoMLX, and GonbUI those of GoNB's library for programs.
const (
	GoMLX  = "github.com/gomlx/"
	GonbUI = "github.com/janpfeifer/gonb/gonbui"
)

// Library turns gonbatch's own go.mod into the notebook's: without its tools, and with gonbatch
// itself replaced by its source tree. gonbatch was tested with these versions, and choosing them
// needs no network.
func Library(sourceDir, modulePath string) (*modfile.File, error) {
	file := filepath.Join(sourceDir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("gonbatch's own source: %w", err)
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return nil, fmt.Errorf("gonbatch's own source: %w", err)
	}
	if mod.Module == nil || mod.Module.Mod.Path != gomodule.OwnPath {
		return nil, fmt.Errorf("%s: is not gonbatch's source: its module is not %q", file, gomodule.OwnPath)
	}
	for _, tool := range slices.Clone(mod.Tool) {
		if err := mod.DropTool(tool.Path); err != nil {
			return nil, err
		}
	}
	return mod, errors.Join(
		mod.AddModuleStmt(modulePath),
		mod.AddRequire(gomodule.OwnPath, "v0.0.0"),
		mod.AddReplace(gomodule.OwnPath, "", sourceDir, ""),
	)
}

// Files returns go.mod and go.sum.
func Files(mod *modfile.File, sourceDir string) (map[string][]byte, error) {
	mod.SetRequireSeparateIndirect(mod.Require)
	mod.Cleanup()
	mod.SortBlocks()
	data, err := mod.Format()
	if err != nil {
		return nil, fmt.Errorf("go.mod: %w", err)
	}
	files := map[string][]byte{"go.mod": data}
	sum, err := os.ReadFile(filepath.Join(sourceDir, "go.sum"))
	switch {
	case err == nil:
		files["go.sum"] = sum
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("gonbatch's own source: %w", err)
	}
	return files, nil
}
