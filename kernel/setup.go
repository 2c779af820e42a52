package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"gonbatch/internal/plugin"
)

// Setup installs the kernel with everything it needs besides its kernelspec.
type Setup struct {
	Spec InstallOptions
	// SpecOnly leaves out the rest: the programs are on PATH.
	SpecOnly bool
	// Wait makes Install fetch and compile the Go modules before it returns, not in the background.
	Wait    bool
	Environ []string
	// Progress receives progress messages.
	Progress io.Writer
}

// Install installs everything and returns the kernelspec's folder.
func (s Setup) Install(ctx context.Context) (dir string, err error) {
	if dir, err = Install(s.Spec); err != nil || s.SpecOnly {
		return dir, err
	}
	if err := s.installAround(ctx, dir); err != nil {
		return dir, fmt.Errorf("%w\nThe kernelspec is in %s; run submit kernel install again to fix the rest", err, dir)
	}
	return dir, nil
}

// installAround installs what the kernel needs besides its kernelspec.
func (s Setup) installAround(ctx context.Context, dir string) error {
	source, err := sourceDir(ctx, s.Environ)
	if err != nil {
		return err
	}
	s.Spec.Env, err = installTools(ctx, dir, source, s.Environ, s.Progress)
	if err != nil {
		return err
	}
	if _, err := Install(s.Spec); err != nil {
		return err
	}
	if _, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CPU, Progress: s.Progress, Getenv: s.Spec.Getenv}); err != nil {
		fmt.Fprintf(s.Progress, "XLA's plugin: %v\nCells that run on XLA will try again.\n", err)
	}
	if _, err := plugin.EnsureOneDNN(ctx, plugin.Options{Progress: s.Progress, Getenv: s.Spec.Getenv}); err != nil {
		fmt.Fprintf(s.Progress, "%v; until then, training on CPUs takes longer\n", err)
	}
	if _, err := lookAtPapermill(s.Environ, source); err != nil && !errors.Is(err, errNoPapermill) {
		fmt.Fprintln(s.Progress, err)
	}
	if s.Wait {
		return Warm(ctx, s.Environ)
	}
	return s.warmInBackground(dir)
}

// warmInBackground starts "submit kernel warm", which outlives this command.
func (s Setup) warmInBackground(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	copied := filepath.Join(dir, filepath.Base(self))
	if _, err := os.Stat(copied); err == nil {
		self = copied // go run removes its own program
	}
	name := filepath.Join(dir, "warm.log")
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the program that writes it has its own handle
	cmd := exec.Command(self, "kernel", "warm")
	cmd.Env, cmd.Stdout, cmd.Stderr = s.Environ, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Fprintf(s.Progress, "Go modules are fetched and compiled in the background: process %d, %s\n", cmd.Process.Pid, name)
	return cmd.Process.Release()
}
