package main

import (
	"context"

	"gonbatch/internal/source"
)

// sourceDir is the tree of gonbatch's own library, which the programs are compiled with.
func sourceDir(ctx context.Context, a *app) (string, error) {
	return source.Dir(ctx, source.Options{Getenv: a.getenv})
}
