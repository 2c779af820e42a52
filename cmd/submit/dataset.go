package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"gonbatch/data/mnist"
)

// fetchDataset brings a dataset into its folder of this user. It does nothing where the dataset is there.
type fetchDataset func(ctx context.Context, getenv func(string) string, progress io.Writer) error

// datasets are those that a notebook uses by importing their package. Compute nodes have no network, so they are fetched
// before a job is queued.
var datasets = map[string]fetchDataset{
	"gonbatch/data/mnist": func(ctx context.Context, getenv func(string) string, progress io.Writer) error {
		return mnist.Fetch(ctx, mnist.Dir(getenv), progress)
	},
}

// fetchDatasets fetches what the imports need.
func fetchDatasets(ctx context.Context, imports []string, getenv func(string) string, progress io.Writer) error {
	for _, path := range slices.Sorted(slices.Values(imports)) {
		fetch, ok := datasets[path]
		if !ok {
			continue
		}
		if err := fetch(ctx, getenv, progress); err != nil {
			return fmt.Errorf("dataset of %s: %w", path, err)
		}
	}
	return nil
}
