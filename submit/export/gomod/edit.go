package gomod

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Edit makes a change in a go.mod file. Making it twice does no harm.
type Edit func(*modfile.File) error

// Edits are the changes that a go command makes to go.mod. reason is why some are left out.
func Edits(words []string) (edits []Edit, reason string) {
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
func goWorkUse(args []string) (edits []Edit, reason string) {
	for _, dir := range args {
		switch {
		case dir == "." || strings.HasPrefix(dir, "-"):
			continue
		case !filepath.IsAbs(dir):
			reason = relative(dir)
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		path := modfile.ModulePath(data)
		if err != nil || path == "" {
			reason = fmt.Sprintf("there is no module in %s: it has no go.mod with a module line", dir)
			continue
		}
		edits = append(edits, func(mod *modfile.File) error {
			inMod := func(r *modfile.Require) bool { return r.Mod.Path == containingModule(mod, path) }
			if !slices.ContainsFunc(mod.Require, inMod) {
				if err := mod.AddRequire(path, "v0.0.0"); err != nil {
					return err
				}
			}
			return mod.AddReplace(path, "", dir, "")
		})
	}
	return edits, reason
}

// goGet reads the arguments of go get: those with an exact version are requirements.
func goGet(args []string) (edits []Edit, reason string) {
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
		edits = append(edits, require(arg))
	}
	return edits, reason
}

// goModEdit reads the flags of go mod edit.
func goModEdit(args []string) (edits []Edit, reason string) {
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !joined && i+1 < len(args) {
			i++
			value, joined = args[i], true
		}
		path, version, _ := strings.Cut(value, "@")
		switch {
		case flag == "require" && joined:
			edits = append(edits, require(value))
		case flag == "droprequire" && joined:
			edits = append(edits, func(mod *modfile.File) error { return mod.DropRequire(path) })
		case flag == "dropreplace" && joined:
			edits = append(edits, func(mod *modfile.File) error { return mod.DropReplace(path, version) })
		case flag == "replace" && joined:
			edit, why := replace(value)
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

// require adds PATH@VERSION, a module or a package within one.
func require(text string) Edit {
	path, version, _ := strings.Cut(text, "@")
	return func(mod *modfile.File) error { return mod.AddRequire(containingModule(mod, path), version) }
}

// replace reads OLD[@VERSION]=NEW[@VERSION].
func replace(value string) (edit Edit, reason string) {
	from, to, ok := strings.Cut(value, "=")
	if !ok {
		return nil, fmt.Sprintf("%q is not OLD=NEW", value)
	}
	oldPath, oldVersion, _ := strings.Cut(from, "@")
	newPath, newVersion, _ := strings.Cut(to, "@")
	if newVersion == "" && !filepath.IsAbs(newPath) {
		return nil, relative(newPath)
	}
	return func(mod *modfile.File) error { return mod.AddReplace(oldPath, oldVersion, newPath, newVersion) }, ""
}

func relative(dir string) string {
	return dir + " is a relative folder; give an absolute path, or one below $GONB_DIR"
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
