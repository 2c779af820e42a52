package build

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gonbatch/submit/export"
)

// vet runs go vet on every program, once for all cells with the same flags, and returns its
// findings in the cells. The programs must compile.
func vet(ctx context.Context, m *export.Module, tools *toolchain) ([]Problem, error) {
	var problems []Problem
	for _, cells := range flagGroups(m) {
		args := slices.Concat([]string{"vet"}, baseFlags, withoutCoverage(cells[0].BuildFlags))
		for _, cell := range cells {
			args = append(args, "./"+cell.Name)
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
