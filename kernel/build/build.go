package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/tool"
)

// ErrBuild means that a program does not compile or link. The messages are in the output.
var ErrBuild = errors.New("the cell's program was not built")

// Files in the folder Cell: the build uses them to record its times, and that an expression has no
// value.
const (
	TimeFile  = "time" // exists if times are wanted
	BuildTime = "time-build"
	LinkTime  = "time-link"
	VoidFile  = "void"
	// BuiltFile is the last program that was built.
	BuiltFile = "built.go"
)

// Options configure a build.
type Options struct {
	// Go is the go command.
	Go string
	// Dir is the folder of the cells' module.
	Dir string
	// Verb is the go command's verb: build, or test -c for the tests of a cell.
	Verb []string
	// Program is the script that starts the program; Program.run is the program itself.
	Program string
	// Flags are additional flags of go build.
	Flags []string
	// Seed contains the script, and the Go files of the kernel's functions. Cell is the folder in
	// which the kernel and a cell's program exchange files. Plans is the session's folder for
	// building by plans. Store is the folder of the plans, which sessions may share; if it is
	// empty, Plans is used.
	Seed, Cell, Plans, Store string
	// Checkpoints is the folder for the checkpoints of programs that don't name one; "" if there is
	// no such folder.
	Checkpoints string
	// Environ is the environment of the go command, as in os.Environ.
	Environ []string
	// Output receives the compiler's messages.
	Output io.Writer
}

// Run builds the program. It blocks; a session has one build at a time.
func Run(ctx context.Context, opts Options) error {
	if opts.Store == "" {
		opts.Store = opts.Plans
	}
	b := &builder{opts}
	if tool.Get(b.Environ, "GOGC") == "" { // The linker would spend a quarter of its time collecting garbage.
		b.Environ = append(slices.Clone(b.Environ), "GOGC=400")
	}
	b.noteTime(BuildTime)
	if err := b.prepare(); err != nil {
		return fmt.Errorf("build the cell: %w", err)
	}
	output, err := b.build(ctx)
	if err != nil && bytes.Contains(output, []byte("(no value) used as value")) {
		if err := b.unmarkValue(); err != nil {
			return fmt.Errorf("build the cell: %w", err)
		}
		output, err = b.build(ctx)
	}
	if _, writeErr := b.Output.Write(readable(output)); writeErr != nil {
		return writeErr
	}
	if err != nil {
		return err
	}
	b.noteTraining()
	b.keepBuilt()
	return b.hideMain()
}

// keepBuilt copies the program's text into Cell, atomically, for concurrent completions.
func (b *builder) keepBuilt() {
	text, err := os.ReadFile(b.mainFile())
	if err != nil {
		return
	}
	built := filepath.Join(b.Cell, BuiltFile)
	if os.WriteFile(built+".new", text, 0o600) == nil {
		_ = os.Rename(built+".new", built)
	}
}

type builder struct{ Options }

// ProgramSuffix ends the name of the program that the script starts.
const ProgramSuffix = ".run"

func (b *builder) binary() string { return b.Program + ProgramSuffix }

func (b *builder) isTest() bool { return b.Verb[0] == "test" }

// build builds by a plan, or with the go command. It returns the compiler's messages. Tests have no
// plan.
func (b *builder) build(ctx context.Context) ([]byte, error) {
	if b.isTest() {
		return b.byGo(ctx, "")
	}
	key, err := b.key()
	if err == nil {
		if output, ok := b.byPlan(ctx, key); ok && len(output) > 0 {
			return output, ErrBuild
		} else if ok {
			return nil, nil
		}
	}
	return b.byGo(ctx, key)
}

// linkerMessage matches what Go's linker says if it fails.
var linkerMessage = regexp.MustCompile(`/link: |\(\.text\): relocation target `)

// byGo runs go build and, if there is a key, makes a plan from its record. It links with Go's own
// linker, which is faster than C's. If that can't link the output of cgo, it uses C's.
func (b *builder) byGo(ctx context.Context, key string) ([]byte, error) {
	record := filepath.Join(b.Plans, "record")
	if err := errors.Join(os.RemoveAll(record), os.MkdirAll(record, 0o755)); err != nil {
		return nil, fmt.Errorf("build the cell: %w", err)
	}
	output, err := b.goBuild(ctx, record, "-ldflags=-s "+internalLinker)
	if err != nil && linkerMessage.Match(output) {
		output, err = b.goBuild(ctx, record, "-ldflags=-s")
	}
	if err != nil {
		return output, err
	}
	_ = os.Remove(filepath.Join(b.Plans, lastFile)) // the program was not built by a plan
	if key != "" {
		b.keepPlan(key, record)
	}
	return output, nil
}

func (b *builder) goBuild(ctx context.Context, record, linkerFlags string) ([]byte, error) {
	args := []string{"-toolexec=" + filepath.Join(b.Seed, "record"), "-o", b.binary()}
	cmd := exec.CommandContext(ctx, b.Go, slices.Concat(b.Verb, args, b.Flags)...)
	cmd.Dir = b.Dir
	cmd.Env = append(slices.Clone(b.Environ), "PWD="+b.Dir)
	flags := tool.Get(cmd.Env, "GOFLAGS") + " '" + linkerFlags + "'"
	cmd.Env = append(cmd.Env, "GOFLAGS="+flags, rundir.EnvRecord+"="+record)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return output, ErrBuild
	}
	return output, err
}

// noteTime writes the time to a file in Cell, if times are wanted.
func (b *builder) noteTime(name string) {
	if _, err := os.Stat(filepath.Join(b.Cell, TimeFile)); err == nil {
		_ = os.WriteFile(filepath.Join(b.Cell, name), strconv.AppendInt(nil, time.Now().UnixNano(), 10), 0o600)
	}
}
