package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gonbatch/internal/gomodule"
	"gonbatch/submit"
	"gonbatch/submit/export"
	"gonbatch/submit/modules"
)

// resolve finds the modules of an exported notebook, and prints them.
func (n Notebook) resolve(ctx context.Context, shell submit.Shell, module *export.Module) (*export.Module, error) {
	again := func(r export.Resolved) (*export.Module, error) { return n.read(ctx, shell, r) }
	opt := modules.Options{Env: shell.Environ, ModuleCache: gomodule.CacheDir(shell.Getenv)}
	if shell.Self != "" {
		opt.Imports = []string{shell.Self, modules.CommandName}
	}
	var err error
	if opt.Lock, err = n.lockFile(); err != nil {
		return nil, err
	}
	if n.SessionMod != "" {
		if opt.Session, err = os.ReadFile(n.SessionMod); err != nil {
			return nil, fmt.Errorf("the session's modules: %w", err)
		}
	}
	result, err := modules.Resolve(ctx, module, again, opt)
	if err != nil {
		return nil, err
	}
	for _, warning := range result.Warnings {
		shell.Warn("%s", warning)
	}
	for _, taken := range result.Taken {
		fmt.Fprintf(shell.Err, "submit: module %s\n", taken)
	}
	shell.WarnUnlessForbidden(result.LockError)
	return result.Module, nil
}

// lockFile returns the file that keeps the notebook's modules; "" if a kernel's session has no
// notebook.
func (n Notebook) lockFile() (string, error) {
	origin, err := n.origin()
	if err != nil {
		return "", err
	}
	_, err = os.Stat(origin)
	if errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(filepath.Base(origin), ".") {
		return "", nil
	}
	return modules.LockFile(origin), nil
}
