package tool

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/rundir"
)

// goplsVersion is the newest gopls that Go 1.26 builds.
const goplsVersion = "v0.21.1"

// Pin is a program in a particular version.
type Pin struct {
	// Name is the program's name, Package the package that it is built from, Module the package's
	// module.
	Name, Package, Module, Version string
	// Optional is set if the kernel runs without the program, as it does without completion.
	Optional bool
}

// Pins lists the programs. The versions of GoNB and goimports are those in the go.mod of gonbatch's
// source.
func Pins(sourceDir string) ([]Pin, error) {
	pins := []Pin{
		{Name: "gonb", Package: "github.com/janpfeifer/gonb", Module: "github.com/janpfeifer/gonb"},
		{Name: "goimports", Package: "golang.org/x/tools/cmd/goimports", Module: "golang.org/x/tools"},
		{Name: "gopls", Package: "golang.org/x/tools/gopls", Module: "golang.org/x/tools/gopls", Version: goplsVersion, Optional: true},
	}
	mod, err := SourceModule(sourceDir)
	if err != nil {
		return nil, err
	}
	for i := range pins {
		for _, r := range mod.Require {
			if r.Mod.Path == pins[i].Module {
				pins[i].Version = r.Mod.Version
			}
		}
		if pins[i].Version == "" {
			return nil, fmt.Errorf("%s does not require %s: set %s to gonbatch's source tree", mod.Syntax.Name, pins[i].Module, rundir.EnvSource)
		}
	}
	return pins, nil
}

// SourceModule reads the go.mod of gonbatch's source.
func SourceModule(sourceDir string) (*modfile.File, error) {
	name := filepath.Join(sourceDir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: set %s to gonbatch's source tree", err, rundir.EnvSource)
	}
	mod, err := modfile.Parse(name, text, nil)
	if err == nil && mod.Module == nil {
		err = fmt.Errorf("%s: no module line: set %s to gonbatch's source tree", name, rundir.EnvSource)
	}
	return mod, err
}

// Is reports whether a file is the pinned program: built from the package at the version.
func (p Pin) Is(file string) bool { return p.VersionOf(file) == p.Version }

// VersionOf returns the version of the program in a file; "" if it is another program, or none.
func (p Pin) VersionOf(file string) string {
	info, err := buildinfo.ReadFile(file)
	if err != nil || info.Path != p.Package {
		return ""
	}
	if info.Main.Path == p.Module {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == p.Module {
			return dep.Version
		}
	}
	return ""
}
