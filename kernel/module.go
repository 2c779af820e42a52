package kernel

import (
	"fmt"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gomodule"
	"gonbatch/kernel/tool"
)

// moduleText returns the go.mod of a session. It requires the module in sourceDir, replaced by that
// folder, and the same version of every other module as the source module. So imports of all of
// them resolve without a network.
//
// The source module is replaced twice, for all versions and for the required one, because the go
// command turns a block with one line into a single line, and GoNB watches all files below the
// folder of a single line each time that a session starts.
func moduleText(sourceDir string) ([]byte, error) {
	src, err := tool.SourceModule(sourceDir)
	if err != nil {
		return nil, err
	}
	mod := new(modfile.File)
	if err := mod.AddModuleStmt("session"); err != nil {
		return nil, err
	}
	if src.Go != nil {
		if err := mod.AddGoStmt(src.Go.Version); err != nil {
			return nil, err
		}
	}
	mod.AddNewRequire(src.Module.Mod.Path, gomodule.LocalVersion, false)
	for _, r := range src.Require {
		mod.AddNewRequire(r.Mod.Path, r.Mod.Version, r.Indirect)
	}
	mod.Cleanup()
	return append(modfile.Format(mod.Syntax), replaceBlock(src, sourceDir)...), nil
}

// replaceBlock replaces the source module with its folder and keeps the source module's own
// replacements.
func replaceBlock(src *modfile.File, sourceDir string) string {
	block := "\nreplace (\n"
	line := func(old, new string) { block += fmt.Sprintf("\t%s => %s\n", old, new) }
	line(src.Module.Mod.Path, modfile.AutoQuote(sourceDir))
	line(joinVersion(src.Module.Mod.Path, gomodule.LocalVersion), modfile.AutoQuote(sourceDir))
	for _, r := range src.Replace {
		target := r.New.Path
		if modfile.IsDirectoryPath(target) && !filepath.IsAbs(target) {
			target = filepath.Join(sourceDir, target)
		}
		line(joinVersion(r.Old.Path, r.Old.Version), joinVersion(modfile.AutoQuote(target), r.New.Version))
	}
	return block + ")\n"
}

func joinVersion(path, version string) string {
	if version == "" {
		return path
	}
	return path + " " + version
}
