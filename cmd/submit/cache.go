package main

import (
	"github.com/spf13/cobra"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

const cacheLong = `cache shows the compiled XLA programs that the next cell, the other ranks and a restart load
instead of compiling them again. They are in your cache folder, or in the folder that
` + rundir.EnvCompileCache + ` names; the value off turns the cache off. The cache keeps itself near
2 GiB: it drops the programs that have gone unused the longest.

You can remove programs at any time, even while jobs run. They are compiled again when needed.`

func newCacheCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cache", Short: "Show or clear the cache of compiled XLA programs", Long: cacheLong,
		Example: `  submit cache
  submit cache --prune
  submit cache --prune --unused 168h`,
		Args: cobra.NoArgs,
	}
	prune := cmd.Flags().Bool("prune", false, "remove the programs")
	unused := cmd.Flags().Duration("unused", 0, "with --prune: remove only programs unused for this long")
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
