package modules

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
)

// listed is a package in go list's output.
type listed struct {
	ImportPath string
	Error      *struct {
		ImportStack []string
		Err         string
	}
}

// provide lets the go command download every package that the programs need, and complete go.mod
// and go.sum. If no registry has a module, provide takes the newest version that was downloaded
// before.
func (r *resolver) provide(ctx context.Context) error {
	problems, err := r.list(ctx)
	if err != nil {
		return err
	}
	if len(problems) == 0 {
		return nil
	}
	found := false
	for _, p := range problems {
		took, err := r.takeDownloaded(p.ImportPath)
		if err != nil {
			return err
		}
		found = found || took
	}
	if found {
		if problems, err = r.list(ctx); err != nil || len(problems) == 0 {
			return err
		}
	}
	var mistakes []error
	for _, p := range problems {
		mistakes = append(mistakes, r.importError(p))
	}
	return errors.Join(mistakes...)
}

// list runs go list, which downloads missing modules, and returns the packages that it cannot find.
func (r *resolver) list(ctx context.Context) ([]listed, error) {
	before, err := r.goMod()
	if err != nil {
		return nil, err
	}
	sums, _ := os.ReadFile(r.file("go.sum")) // There may be none.
	args := []string{"list", "-e", "-deps", "-json=ImportPath,Error"}
	if slices.ContainsFunc(r.module.Programs(), func(c rundir.Cell) bool { return c.Test }) {
		args = append(args, "-test")
	}
	problems := map[string]listed{}
	for _, tags := range r.tags() {
		output, err := r.goCommand(ctx, slices.Concat(args, tags, []string{"./..."})...)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case errors.Is(err, exec.ErrNotFound):
			return nil, fmt.Errorf("modules of %s: %w; install Go (https://go.dev/dl), or load the cluster's module for it", r.first.Notebook, err)
		case err != nil:
			return nil, fmt.Errorf("modules of %s: go list: %s", r.first.Notebook, reason(output, err))
		}
		for dec := json.NewDecoder(bytes.NewReader(output)); dec.More(); {
			var p listed
			if err := dec.Decode(&p); err != nil {
				return nil, fmt.Errorf("modules of %s: go list: %w", r.first.Notebook, err)
			}
			if p.Error != nil && !gocell.IsStandard(p.ImportPath) {
				problems[p.ImportPath] = p
			}
		}
	}
	after, err := r.goMod()
	if err != nil {
		return nil, err
	}
	r.noteNew(versions(before), versions(after), string(sums))
	return slices.SortedFunc(maps.Values(problems), func(a, b listed) int { return cmp.Compare(a.ImportPath, b.ImportPath) }), nil
}

// noteNew notes the modules that were added for an import: in their newest version, unless one of
// gonbatch's modules requires another. Then its go.mod has a checksum already.
func (r *resolver) noteNew(before, after map[string]string, sums string) {
	for path, version := range after {
		asked := strings.Contains(sums, path+" "+version+"/go.mod ")
		if before[path] == "" && r.why[path] == "" && !asked {
			r.why[path] = "the newest"
		}
	}
}

// goCommand runs the go command in the module's folder, and returns its standard output, or all
// output if it fails.
func (r *resolver) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, cmp.Or(r.Go, "go"), args...)
	cmd.Dir, cmd.Env = r.dir, r.goEnviron(slices.Clone(r.Env))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return append(stderr.Bytes(), stdout.Bytes()...), err
	}
	return stdout.Bytes(), nil
}

// goEnviron adds variables that let the go command change the module. Of the user's GOFLAGS, it
// keeps only -modcacherw.
func (r *resolver) goEnviron(environ []string) []string {
	flags := "-mod=mod"
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, "GOFLAGS="); ok && strings.Contains(value, "-modcacherw") {
			flags += " -modcacherw"
		}
	}
	return append(environ, "GO111MODULE=on", "GOWORK=off", "GOFLAGS="+flags, "PWD="+r.dir)
}

// importError returns an error that names the import without a module, and what to do.
func (r *resolver) importError(p listed) error {
	path, why := p.ImportPath, remedy(strings.TrimSpace(p.Error.Err), p.ImportPath, "check the import path, or name a version in the notebook: !*go get "+p.ImportPath+"@VERSION")
	for _, importer := range p.Error.ImportStack {
		if _, ok := r.module.ImportSites[importer]; ok {
			path = importer
			break
		}
	}
	site, ok := r.module.ImportSites[path]
	if !ok {
		return fmt.Errorf("%s: no module provides %q: %s", r.first.Notebook, p.ImportPath, why)
	}
	needs := ""
	if path != p.ImportPath {
		needs = fmt.Sprintf(" needs %q, and", p.ImportPath)
	}
	return r.mistake(site, "%q:%s no module provides it here: %s", path, needs, why)
}

// offline are parts of the go command's messages when it reaches no registry.
var offline = []string{"dial tcp", "no such host", "module lookup disabled", "connection refused", "i/o timeout", "network is unreachable", "Could not resolve host"}

// unbound matches the shell's message about a variable that is not set.
var unbound = regexp.MustCompile(`(\w+): unbound variable`)

// createFolder says what to do about a missing folder.
const createFolder = "create the folder before you submit: put the module's source there, or run the cells that create it in the kernel, " +
	"since programs are compiled before the job runs a cell"

// remedy returns the go command's message about a path and what to do: otherwise, if it names no
// known cause.
func remedy(why, path, otherwise string) string {
	isIn := func(text string) bool { return strings.Contains(why, text) }
	do := otherwise
	switch {
	case unbound.MatchString(why):
		do = fmt.Sprintf("export it before you submit, as in the kernel's environment, or set it in the notebook: %%env %s VALUE", unbound.FindStringSubmatch(why)[1])
	case isIn("does not exist"):
		do = createFolder + "; to use the module's published version instead, tag the cell notebook-only"
	case slices.ContainsFunc(offline, isIn):
		do = "submit once where the network reaches GOPROXY, such as a login node; later submissions use what was downloaded"
	case isIn("403 Forbidden"), isIn("is not available"):
		do = "if the registry only refuses to list the versions, name one in the notebook: !*go get " + path + "@VERSION"
	}
	return why + "\n" + do
}

// tags returns the different build tags of the programs.
func (r *resolver) tags() (all [][]string) {
	for _, cell := range r.module.Programs() {
		tags := gocell.BuildTags(cell.BuildFlags)
		if !slices.ContainsFunc(all, func(t []string) bool { return slices.Equal(t, tags) }) {
			all = append(all, tags)
		}
	}
	return all
}
