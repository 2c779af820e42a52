package modules

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"gonbatch/internal/gomodule"
	"gonbatch/submit/export"
)

// checkCommand checks a command's changes to go.mod, and refuses those that cannot work in a job.
func (r *resolver) checkCommand(command *export.ModuleCommand, before, after *modfile.File) error {
	where := fmt.Sprintf("cell %s, line %d", command.Label(), command.Line)
	old, replaced := versions(before), replacements(before)
	for path, version := range versions(after) {
		if old[path] != version {
			r.why[path] = where
		}
	}
	for path, to := range replacements(after) {
		if replaced[path] != to {
			r.why[path] = where
		}
	}
	if err := r.checkFolders(command, after); err != nil {
		return err
	}
	return r.checkOwn(command, before, after)
}

// checkFolders refuses replacements by missing folders.
func (r *resolver) checkFolders(command *export.ModuleCommand, mod *modfile.File) error {
	for _, replace := range mod.Replace {
		to := replace.New.Path
		if replace.New.Version != "" || replace.Old.Path == gomodule.OwnPath {
			continue
		}
		if !filepath.IsAbs(to) {
			return r.mistake(command.Site, "%s is relative to the kernel's temporary folder, which a job does not have; give an absolute path, or one below ${GONB_DIR}", to)
		}
		if _, err := os.Stat(filepath.Join(to, "go.mod")); err != nil {
			return r.mistake(command.Site, "there is no module in %s, which replaces %s: it has no go.mod; %s", to, replace.Old.Path, createFolder)
		}
	}
	return nil
}

// checkOwn warns if a command lowers the version of a module that gonbatch needs. If that removes
// gonbatch and the programs import it, that is an error.
func (r *resolver) checkOwn(command *export.ModuleCommand, before, after *modfile.File) error {
	was, now := versions(before), versions(after)
	var lowered []string
	for _, path := range slices.Sorted(maps.Keys(versions(r.own))) {
		if now[path] != "" && semver.Compare(now[path], was[path]) < 0 {
			lowered = append(lowered, fmt.Sprintf("%s from %s to %s", path, was[path], now[path]))
		}
	}
	removed := was[gomodule.OwnPath] != "" && now[gomodule.OwnPath] == ""
	switch {
	case removed && slices.ContainsFunc(r.first.Imports, gomodule.IsOwn):
		return r.mistake(command.Site, "!*%s lowers %s, and gonbatch, which the programs import, needs the newer version; remove the line, or ask for that version or a newer one",
			command.Text, strings.Join(lowered, ", "))
	case len(lowered) > 0 && removed:
		r.warn(command, fmt.Sprintf("!*%s lowers %s: gonbatch was tested with the newer version", command.Text, strings.Join(lowered, ", ")))
	case len(lowered) > 0:
		r.warn(command, fmt.Sprintf("!*%s asks for %s, but another module needs the newer version, so that one is used", command.Text, strings.Join(lowered, ", ")))
	}
	return nil
}

// useWorkspace turns the modules of go.work, if there is one, into replacements, because a job has
// no go.work. It removes the replacements of an earlier go.work.
func (r *resolver) useWorkspace(command *export.ModuleCommand) error {
	text, err := os.ReadFile(r.file("go.work"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return r.mistake(command.Site, "%v", err)
	}
	return r.edit(func(mod *modfile.File) error {
		for _, path := range r.workspace {
			if err := mod.DropReplace(path, ""); err != nil {
				return err
			}
			if versions(mod)[path] == gomodule.LocalVersion {
				if err := mod.DropRequire(path); err != nil {
					return err
				}
			}
		}
		r.workspace = nil
		for _, use := range work.Use {
			dir := use.Path
			if !filepath.IsAbs(dir) {
				dir = r.file(dir)
			}
			if dir == r.dir {
				continue
			}
			path, err := gomodule.UseFolder(mod, dir)
			if err != nil {
				return r.mistake(command.Site, "%v", err)
			}
			r.workspace = append(r.workspace, path)
		}
		return nil
	})
}
