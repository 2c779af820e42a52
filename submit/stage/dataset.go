package stage

import (
	"context"
	"fmt"
	"io"
	"slices"

	"gonbatch/data/mnist"
	"gonbatch/submit"
)

// fetchDataset brings a dataset into its folder of this user. It does nothing where the dataset is
// there.
type fetchDataset func(ctx context.Context, getenv func(string) string, progress io.Writer) error

// datasets are those that a notebook uses by importing their package. Compute nodes have no
// network, so they are fetched before a job is queued.
var datasets = map[string]fetchDataset{
	"gonbatch/data/mnist": func(ctx context.Context, getenv func(string) string, progress io.Writer) error {
		return mnist.Fetch(ctx, mnist.Dir(getenv), progress)
	},
}

// FetchDatasets brings the datasets that the imports need to this machine: compute nodes have no
// network.
func FetchDatasets(ctx context.Context, shell submit.Shell, imports []string) error {
	for _, path := range slices.Sorted(slices.Values(imports)) {
		fetch, ok := datasets[path]
		if !ok {
			continue
		}
		if err := fetch(ctx, shell.Getenv, shell.Err); err != nil {
			return fmt.Errorf("dataset of %s: %w", path, err)
		}
	}
	return nil
}
