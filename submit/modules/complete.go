package modules

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"

	"golang.org/x/tools/imports"
)

// CommandName is the name of the command `submit imports`, which this package calls itself.
const CommandName = "imports"

// Command runs `submit imports FILE`: it reads the program for FILE, and prints it with
// the imports that it lacks. goimports looks for modules from the folder that the process is in.
func Command(in io.Reader, out io.Writer, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s %q: want FILE", CommandName, args)
	}
	source, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	fixed, err := imports.Process(args[0], source, nil)
	if err != nil {
		return err
	}
	_, err = out.Write(fixed)
	return err
}

// completed returns a program with the imports that it lacks, found from the module's folder.
func (r *resolver) completed(ctx context.Context, file string, source []byte) ([]byte, error) {
	if len(r.Imports) == 0 {
		return imports.Process(file, source, nil)
	}
	cmd := exec.CommandContext(ctx, r.Imports[0], append(slices.Clone(r.Imports[1:]), file)...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, r.goEnviron(slices.Clone(r.Env)), bytes.NewReader(source)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	fixed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, stderr.Bytes())
	}
	return fixed, nil
}
