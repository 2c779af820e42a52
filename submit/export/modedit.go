package export

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// modEdit is one change to go.mod that a notebook makes by !*go get or !*go mod edit.
type modEdit struct {
	// require is a required module, or a package within one.
	require module.Version
	// replace and with are a replacement; with.Version is "" for a folder.
	replace, with module.Version
}

// shell notes a shell command: what !* does to go.mod is replayed at the export, any other is for the job.
func (s *session) shell(cell *cellInfo, m magicLine) error {
	command, inTempDir := strings.CutPrefix(m.text, "*")
	words := splitWords(command)
	if !inTempDir {
		return s.queue(cell, m, bashLine(m.text))
	}
	if len(words) < 2 || words[0] != "go" {
		s.warn(cell, m.line, "the shell command is not run on the cluster, where the kernel's temporary folder is not: !"+m.text)
		return nil
	}
	edits, reason := goCommandEdits(words)
	if reason != "" {
		s.warn(cell, m.line, fmt.Sprintf("!%s is not replayed: %s", m.text, reason))
	}
	s.mods = append(s.mods, edits...)
	return nil
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
	case words[1] == "mod" && len(words) > 2 && (words[2] == "tidy" || words[2] == "init" || words[2] == "download"):
		return nil, ""
	}
	return nil, "only go get and go mod edit are"
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
		case flag == "require" && joined:
			path, version, _ := strings.Cut(value, "@")
			edits = append(edits, modEdit{require: module.Version{Path: path, Version: version}})
		case flag == "replace" && joined:
			edit, why := replaceEdit(value)
			if why != "" {
				reason = why
				continue
			}
			edits = append(edits, edit)
		default:
			reason = fmt.Sprintf("-%s is neither -require=PATH@VERSION nor -replace=OLD=NEW", flag)
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
		return edit, fmt.Sprintf("%s is a relative folder; give the whole path", edit.with.Path)
	}
	return edit, ""
}

// apply makes the change in a go.mod file.
func (e modEdit) apply(mod *modfile.File) error {
	if e.replace.Path != "" {
		return mod.AddReplace(e.replace.Path, e.replace.Version, e.with.Path, e.with.Version)
	}
	path := containingModule(mod, e.require.Path)
	return mod.AddRequire(path, e.require.Version)
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
