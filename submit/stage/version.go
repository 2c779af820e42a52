package stage

import (
	"cmp"
	"runtime/debug"

	"golang.org/x/mod/modfile"

	"gonbatch/submit/export"
)

// Version returns the version of this program: a release, else a commit, else "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	version := cmp.Or(info.Main.Version, "(devel)")
	if version != "(devel)" {
		return version
	}
	revision := cmp.Or(settings["vcs.revision"], "devel")
	if settings["vcs.modified"] == "true" {
		revision += "+changes"
	}
	return revision
}

// recordedModules maps the libraries whose versions a manifest records to their common names.
var recordedModules = map[string]string{
	"github.com/gomlx/gomlx": "gomlx", "github.com/gomlx/go-xla": "go-xla", "github.com/gomlx/compute": "compute",
}

// versionsOf returns the versions with which the module is compiled.
func versionsOf(m *export.Module, goVersion string) map[string]string {
	versions := map[string]string{"gonbatch": Version(), "go": goVersion}
	file, err := modfile.ParseLax("go.mod", m.Files["go.mod"], nil)
	if err != nil {
		return versions
	}
	for _, r := range file.Require {
		if name, ok := recordedModules[r.Mod.Path]; ok {
			versions[name] = r.Mod.Version
		}
	}
	return versions
}
