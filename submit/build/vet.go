package build

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonbatch/submit/export"
)

// Vet runs go vet on every program of the module, which m.Write has put into moduleDir, and gives what it found in the
// cells. A module that does not compile is an error: Build first.
func Vet(ctx context.Context, moduleDir string, m *export.Module, opt Options) ([]Problem, error) {
	tools, err := findToolchain(ctx, moduleDir, opt)
	if err != nil {
		return nil, fmt.Errorf("vet %s: %w", m.Notebook, err)
	}
	tools.useFlags(m)
	var problems []Problem
	for _, steps := range flagGroups(m) {
		args := append([]string{"vet"}, steps[0].BuildFlags...)
		for _, step := range steps {
			args = append(args, "./"+step.Package)
		}
		output, err := tools.run(ctx, args...)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("vet %s: %w", m.Notebook, context.Cause(ctx))
		}
		if err == nil {
			continue
		}
		found := newError(m, output, err)
		var mistakes *Error
		if !errors.As(found, &mistakes) || len(mistakes.Problems) == 0 {
			return nil, fmt.Errorf("vet %s: %w\n%s", m.Notebook, err, output)
		}
		for _, p := range mistakes.Problems {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	return problems, nil
}
