package main

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

const cacheLong = `cache shows the XLA programs that are kept compiled, so that the next cell, the other ranks and a
restart load them. They are in your cache folder, or in the one that ` + rundir.EnvCompileCache + `
names; its value off turns the cache off. The cache stays near 2 GiB by itself: it drops the
programs that were not used for the longest time.

Programs can be removed at any time, also while jobs run. They are compiled again when they are
needed.`

func newCacheCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cache", Short: "Show the compiled XLA programs that are kept, or remove them", Long: cacheLong,
		Example: `  submit cache
  submit cache --prune
  submit cache --prune --unused 168h`,
		Args: cobra.NoArgs,
	}
	prune := cmd.Flags().Bool("prune", false, "remove the programs")
	unused := cmd.Flags().Duration("unused", 0, "with --prune: only those that were not used for this time")
	return reporting(a, cmd, func(*cobra.Command, []string) (report.Report, error) {
		if *unused != 0 && !*prune {
			return nil, submit.Usagef("--unused=%s: it chooses what --prune removes; give both", *unused)
		}
		before := a.Now().Add(-*unused)
		return a.showCache(func(p compilecache.Program) bool { return *prune && !p.Used.After(before) })
	})
}

// showCache removes the programs that remove selects, and reports the rest.
func (a *app) showCache(remove func(compilecache.Program) bool) (report.Report, error) {
	dir, err := compilecache.Place(a.Getenv)
	if err != nil || dir == "" {
		return report.Cache{}, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return report.Cache{Folder: dir, Limit: compilecache.Limit}, nil
	}
	cache, err := compilecache.Open(dir, compilecache.Limit, func(err error) { a.Warn("%v", err) })
	if err != nil {
		return nil, err
	}
	removed, err := cache.Remove(remove)
	if err != nil {
		return nil, err
	}
	return describeCache(cache, removed)
}

// describeCache reports the programs in the cache, and those removed from it.
func describeCache(cache *compilecache.Cache, removed []compilecache.Program) (report.Report, error) {
	all, err := cache.Programs()
	if err != nil {
		return nil, err
	}
	r := report.Cache{
		Folder: cache.Dir(), Limit: compilecache.Limit, Size: compilecache.Size(all),
		Removed: len(removed), Freed: compilecache.Size(removed),
	}
	for _, p := range all {
		r.Programs = append(r.Programs, report.CompiledProgram{Key: p.Key, Name: p.Name(), Size: p.Size, Used: p.Used.UTC().Truncate(time.Second)})
	}
	return r, nil
}
