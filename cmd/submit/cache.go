package main

import (
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

Programs can be removed at any time, even while jobs run. They are compiled again when they are
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
			return nil, submit.Usagef("--unused=%s: it works only together with --prune", *unused)
		}
		if *unused < 0 {
			return nil, submit.Usagef("--unused=%s: give a time in the past as a positive duration, such as 168h", *unused)
		}
		before := a.Now().Add(-*unused)
		return a.showCache(func(p compilecache.Program) bool { return *prune && (*unused == 0 || !p.Used.After(before)) })
	})
}

// showCache removes the programs that remove selects, and reports the rest.
func (a *app) showCache(remove func(compilecache.Program) bool) (report.Report, error) {
	cache, err := compilecache.Find(a.Getenv)
	if err != nil || cache == nil {
		return report.Cache{}, err
	}
	removed, err := cache.Remove(remove)
	if err != nil {
		return nil, err
	}
	left, err := cache.Programs()
	return report.NewCache(cache.Dir(), left, removed), err
}
