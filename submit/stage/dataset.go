package stage

import (
	"context"
	"fmt"
	"io"
	"slices"

	"gonbatch/data/cifar10"
	"gonbatch/data/cifar100"
	"gonbatch/data/fashionmnist"
	"gonbatch/data/mnist"
	"gonbatch/submit"
)

// fetchDataset downloads a dataset into this user's folder for it, unless it is already there.
type fetchDataset func(ctx context.Context, getenv func(string) string, progress io.Writer) error

// datasets are the datasets that a notebook uses by importing their packages. Compute nodes have no
// network, so submit fetches them before it queues a job.
var datasets = map[string]fetchDataset{
	"gonbatch/data/cifar10": func(ctx context.Context, getenv func(string) string, progress io.Writer) error {
		return cifar10.Fetch(ctx, cifar10.Dir(getenv), progress)
	},
	"gonbatch/data/cifar100": func(ctx context.Context, getenv func(string) string, progress io.Writer) error {
		return cifar100.Fetch(ctx, cifar100.Dir(getenv), progress)
	},
	"gonbatch/data/fashionmnist": func(ctx context.Context, getenv func(string) string, progress io.Writer) error {
		return fashionmnist.Fetch(ctx, fashionmnist.Dir(getenv), progress)
	},
	"gonbatch/data/mnist": func(ctx context.Context, getenv func(string) string, progress io.Writer) error {
		return mnist.Fetch(ctx, mnist.Dir(getenv), progress)
	},
}

// FetchDatasets downloads the datasets that the imports need to this machine, because compute nodes
// have no network.
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
