package export

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"gonbatch/internal/gocell"
)

// modEdit is one change to go.mod that a notebook makes by !*go get or !*go mod edit.
type modEdit struct {
	// require is a required module, or a package within one.
	require module.Version
	// ifMissing tells that require only counts where no version is required yet.
	ifMissing bool
	// replace and with are a replacement; with.Version is "" for a folder.
	replace, with module.Version
	// drop tells that require or replace is taken out.
	drop bool
}

// shellInModule is a !* line: what it does to go.mod is replayed at the export.
func (s *session) shellInModule(m played) error {
	for _, part := range strings.Split(m.Rest(), "&&") {
		words := gocell.Words(s.expandKernelDir(part))
		switch {
		case slices.Equal(words, []string{"rm", "-f", "go.work"}), slices.Equal(words, []string{"rm", "go.work"}):
			continue // Each export starts without one.
		case len(words) < 2 || words[0] != "go":
			s.warn(m.cell, m.Line, "the shell command is not run on the cluster, where the kernel's temporary folder is not: !"+m.Text)
			return nil
		}
		edits, reason := goCommandEdits(words)
		if reason != "" {
			s.warn(m.cell, m.Line, fmt.Sprintf("!%s is not replayed: %s", m.Text, reason))
		}
		s.mods = append(s.mods, edits...)
	}
	return nil
}

// kernelDir is the variable with the kernel's folder: the notebook's, or where %cd went.
var kernelDir = regexp.MustCompile(`\$(GONB_DIR\b|\{GONB_DIR\})`)

// expandKernelDir puts the kernel's folder in the place of its variable.
func (s *session) expandKernelDir(command string) string {
	dir := s.dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.notebookDir, dir)
	}
	return kernelDir.ReplaceAllLiteralString(command, dir)
}

// goCommandEdits gives what a go command does to go.mod, and the reason why some of it is left out.
func goCommandEdits(words []string) (edits []modEdit, reason string) {
	for _, word := range words {
		if strings.ContainsAny(word, "$`;|&<>*?'") {
			return nil, fmt.Sprintf("%q needs a shell; write it out", word)
		}
	}
	switch {
	case words[1] == "get":
		return goGet(words[2:])
	case words[1] == "mod" && len(words) > 2 && words[2] == "edit":
		return goModEdit(words[3:])
	case words[1] == "work" && len(words) > 2 && (words[2] == "init" || words[2] == "use"):
		return goWorkUse(words[3:])
	case words[1] == "mod" && len(words) > 2 && (words[2] == "tidy" || words[2] == "init" || words[2] == "download"):
		return nil, ""
	}
	return nil, "only go get, go mod edit and go work use are"
}

// goWorkUse reads the folders of go work use: each has a module, which is replaced by its folder.
func goWorkUse(args []string) (edits []modEdit, reason string) {
	for _, dir := range args {
		switch {
		case dir == "." || strings.HasPrefix(dir, "-"):
			continue
		case !filepath.IsAbs(dir):
			reason = fmt.Sprintf("%s is a relative folder; give the whole path, or one behind $GONB_DIR", dir)
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		path := modfile.ModulePath(data)
		if err != nil || path == "" {
			reason = fmt.Sprintf("there is no module in %s: it has no go.mod with a module line", dir)
			continue
		}
		edits = append(edits,
			modEdit{require: module.Version{Path: path, Version: "v0.0.0"}, ifMissing: true},
			modEdit{replace: module.Version{Path: path}, with: module.Version{Path: dir}})
	}
	return edits, reason
}

// goGet reads the arguments of go get: those with an exact version are requirements.
func goGet(args []string) (edits []modEdit, reason string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		path, version, _ := strings.Cut(arg, "@")
		if module.CanonicalVersion(version) == "" {
			if version == "" || version == "latest" || version == "upgrade" || version == "patch" {
				version = "no exact version"
			}
			reason = fmt.Sprintf("%s has %s, and a job must be the same tomorrow; write %s@v1.2.3, or it is taken as gonbatch has it", path, version, path)
			continue
		}
		edits = append(edits, modEdit{require: module.Version{Path: path, Version: version}})
	}
	return edits, reason
}

// goModEdit reads the flags of go mod edit.
func goModEdit(args []string) (edits []modEdit, reason string) {
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !joined && i+1 < len(args) {
			i++
			value, joined = args[i], true
		}
		switch {
		case (flag == "require" || flag == "droprequire") && joined:
			path, version, _ := strings.Cut(value, "@")
			edits = append(edits, modEdit{require: module.Version{Path: path, Version: version}, drop: flag == "droprequire"})
		case flag == "dropreplace" && joined:
			path, version, _ := strings.Cut(value, "@")
			edits = append(edits, modEdit{replace: module.Version{Path: path, Version: version}, drop: true})
		case flag == "replace" && joined:
			edit, why := replaceEdit(value)
			if why != "" {
				reason = why
				continue
			}
			edits = append(edits, edit)
		default:
			reason = fmt.Sprintf("-%s is none of -require=PATH@VERSION, -replace=OLD=NEW, -droprequire=PATH and -dropreplace=OLD", flag)
		}
	}
	return edits, reason
}

// replaceEdit reads OLD[@VERSION]=NEW[@VERSION].
func replaceEdit(value string) (edit modEdit, reason string) {
	from, to, ok := strings.Cut(value, "=")
	if !ok {
		return edit, fmt.Sprintf("%q is not OLD=NEW", value)
	}
	edit.replace.Path, edit.replace.Version, _ = strings.Cut(from, "@")
	edit.with.Path, edit.with.Version, _ = strings.Cut(to, "@")
	if edit.with.Version == "" && !filepath.IsAbs(edit.with.Path) {
		return edit, fmt.Sprintf("%s is a relative folder; give the whole path, or one behind $GONB_DIR", edit.with.Path)
	}
	return edit, ""
}

// apply makes the change in a go.mod file.
func (e modEdit) apply(mod *modfile.File) error {
	path := containingModule(mod, e.require.Path)
	switch {
	case e.replace.Path != "" && e.drop:
		return mod.DropReplace(e.replace.Path, e.replace.Version)
	case e.replace.Path != "":
		return mod.AddReplace(e.replace.Path, e.replace.Version, e.with.Path, e.with.Version)
	case e.drop:
		return mod.DropRequire(e.require.Path)
	case e.ifMissing && requires(mod, path):
		return nil
	}
	return mod.AddRequire(path, e.require.Version)
}

// requires tells whether a go.mod file requires a module.
func requires(mod *modfile.File, path string) bool {
	return slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == path })
}

// containingModule is the longest required module that a package path is in, or the path itself.
func containingModule(mod *modfile.File, path string) string {
	best := ""
	for _, r := range mod.Require {
		p := r.Mod.Path
		if (path == p || strings.HasPrefix(path, p+"/")) && len(p) > len(best) {
			best = p
		}
	}
	if best == "" {
		return path
	}
	return best
}

// addEdits appends the edits that are not in the list yet.
func addEdits(list, more []modEdit) []modEdit {
	for _, e := range more {
		if !slices.Contains(list, e) {
			list = append(list, e)
		}
	}
	return list
}
