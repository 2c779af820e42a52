package modules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"gonbatch/internal/gomodule"
	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
	"gonbatch/submit/export"
	"gonbatch/submit/export/gomod"
	"gonbatch/submit/export/nbcell"
)

// startFromEarlier requires the versions that the notebook or its session had before, and takes the
// imports that were found then.
func (r *resolver) startFromEarlier() error {
	return r.edit(func(mod *modfile.File) error {
		if r.lock != nil {
			for cell, names := range r.first.Open {
				for _, name := range names {
					if path := r.lock.imports[cell][name]; path != "" {
						addImport(r.imports, cell, name, path)
					}
				}
			}
			err := raise(mod, r.lock.diff.mod, func(path string) { r.why[path] = filepath.Base(r.Lock) })
			if err != nil {
				return err
			}
			if err := r.addSums(r.lock.goSum); err != nil {
				return err
			}
		}
		if r.Session == nil {
			return nil
		}
		session, err := modfile.ParseLax("the session's go.mod", r.Session, nil)
		if err != nil {
			return err
		}
		return raise(mod, session, func(path string) { r.why[path] = "this session has it" })
	})
}

// edit changes go.mod.
func (r *resolver) edit(change func(*modfile.File) error) error {
	mod, err := r.goMod()
	if err != nil {
		return err
	}
	if err := change(mod); err != nil {
		return err
	}
	mod.Cleanup()
	text, err := mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(r.file("go.mod"), text, 0o644)
}

// goMod reads go.mod.
func (r *resolver) goMod() (*modfile.File, error) {
	text, err := os.ReadFile(r.file("go.mod"))
	if err != nil {
		return nil, err
	}
	return modfile.Parse("go.mod", text, nil)
}

func (r *resolver) addSums(sums []byte) error {
	have, err := os.ReadFile(r.file("go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(r.file("go.sum"), gomodule.JoinSums(have, sums), 0o644)
}

// replay runs the notebook's own commands, in the kernel's environment.
func (r *resolver) replay(ctx context.Context) error {
	for _, command := range r.first.Commands {
		before, err := r.goMod()
		if err != nil {
			return err
		}
		output, err := r.run(ctx, command)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			mistake := r.mistake(command.Site, "!*%s fails: %s", command.Text, remedy(reason(output, err), "PATH", "correct the line, or tag the cell notebook-only"))
			if !command.MayFail {
				return mistake
			}
			r.warn(command, mistake.Message)
		}
		if err := r.useWorkspace(command); err != nil {
			return err
		}
		after, err := r.goMod()
		if err != nil {
			return err
		}
		if err := r.checkCommand(command, before, after); err != nil {
			return err
		}
	}
	return nil
}

// reason returns why a command failed: the end of its output.
func reason(output []byte, err error) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if last := len(lines) - 1; last > 0 && strings.HasPrefix(lines[last], "exit status ") {
		lines = lines[:last]
	}
	lines = lines[max(0, len(lines)-6):]
	if text := strings.Join(lines, "\n"); text != "" {
		return text
	}
	return err.Error()
}

// mistake returns the error for a line of a cell.
func (r *resolver) mistake(site nbcell.Site, format string, args ...any) *nbcell.Error {
	return &nbcell.Error{Ref: site.Ref, Line: site.Line, Message: fmt.Sprintf(format, args...), SourceLine: r.first.SourceLine(site)}
}

func (r *resolver) warn(command *export.ModuleCommand, message string) {
	r.warnings = append(r.warnings, nbcell.Note{Ref: command.Ref, Line: command.Line, Message: message})
}

// tmpDirVariable is the variable with the folder of the kernel's module.
const tmpDirVariable = "GONB_TMP_DIR"

// kernelEnviron returns a command's environment in the kernel.
func (r *resolver) kernelEnviron(command *export.ModuleCommand) []string {
	environ := slices.Clone(r.Env)
	for name, value := range command.Env {
		environ = append(environ, name+"="+value)
	}
	dir := command.Dir
	if rest, ok := strings.CutPrefix(dir, "~"); ok {
		home, _ := userdir.Home(func(name string) string { return expand.ListEnviron(r.Env...).Get(name).String() }) // The command fails without one.
		dir = filepath.Join(home, rest)
	}
	return append(environ, tmpDirVariable+"="+r.dir, rundir.EnvNotebookDir+"="+dir)
}

// run runs a command line in the module's folder. An unset variable is an error.
func (r *resolver) run(ctx context.Context, command *export.ModuleCommand) (output []byte, err error) {
	line, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command.Text), "")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	shell, err := interp.New(
		interp.Dir(r.dir), interp.Env(expand.ListEnviron(r.kernelEnviron(command)...)), interp.StdIO(nil, &out, &out),
		interp.Params("-u"), interp.OpenHandler(openNothing),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return r.execute }),
	)
	if err != nil {
		return nil, err
	}
	err = shell.Run(ctx, line)
	return out.Bytes(), err
}

// openNothing opens the null device instead of any file.
func openNothing(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	if path != os.DevNull {
		path = os.DevNull // A warning about the notebook names the file.
	}
	return interp.DefaultOpenHandler()(ctx, path, flag, perm)
}

// execute runs a command if it concerns this module. It ignores all others; warnings about the
// notebook name them.
func (r *resolver) execute(ctx context.Context, words []string) error {
	shell := interp.HandlerCtx(ctx)
	switch {
	case !gomod.Replayed(words) || shell.Dir != r.dir:
		return nil
	case words[0] == "rm":
		return errorsOf(words[1:], func(name string) error { return os.RemoveAll(r.file(filepath.Base(name))) })
	case words[1] == "mod" && words[2] != "edit":
		return nil // This package chooses the versions, and adds missing modules at the end.
	case words[1] == "get":
		if words = r.getWords(words); words == nil {
			return nil
		}
	}
	cmd := exec.CommandContext(ctx, cmp.Or(r.Go, "go"), words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, shell.Stdout, shell.Stderr
	shell.Env.Each(func(name string, v expand.Variable) bool {
		if v.Exported && v.IsSet() {
			cmd.Env = append(cmd.Env, name+"="+v.String())
		}
		return true
	})
	cmd.Env = r.goEnviron(cmd.Env)
	if words[1] == "work" {
		cmd.Env = append(cmd.Env, "GOWORK="+r.file("go.work"), "GOFLAGS=")
	}
	err := cmd.Run()
	if err == nil || words[1] == "get" && r.getDownloaded(words[2:]) {
		return nil
	}
	fmt.Fprintln(shell.Stderr, err)
	return interp.ExitStatus(1)
}

// getDownloaded does what go get can't do without a registry that lists versions: it takes modules
// that were downloaded before. It reports whether all were there.
func (r *resolver) getDownloaded(words []string) bool {
	return errorsOf(words, func(word string) error {
		path, version, _ := strings.Cut(word, "@")
		if version != "" && version != "latest" && version != "upgrade" {
			return errors.New("no version is asked for")
		}
		if mod, err := r.goMod(); err != nil || gomodule.Containing(mod, path).Path != "" {
			return err
		}
		took, err := r.takeDownloaded(path)
		if err == nil && !took {
			err = errors.New("it was not downloaded")
		}
		return err
	}) == nil
}

// errorsOf calls f for each word that is not a flag, up to the first error.
func errorsOf(words []string, f func(string) error) error {
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			continue
		}
		if err := f(word); err != nil {
			return err
		}
	}
	return nil
}

// getWords adds the earlier versions to those packages of a go get that have no version in the
// command but are in the lock. It returns nil if there is no package, as in GoNB's own call:
// missing modules are added at the end.
func (r *resolver) getWords(words []string) []string {
	words = slices.Clone(words)
	packages := 0
	for i, word := range words[2:] {
		if strings.HasPrefix(word, "-") {
			continue
		}
		packages++
		if r.lock == nil || strings.Contains(word, "@") {
			continue
		}
		if in := gomodule.Containing(r.lock.diff.mod, word); in.Path != "" {
			words[i+2] = word + "@" + in.Version
		}
	}
	if packages == 0 {
		return nil
	}
	return words
}
