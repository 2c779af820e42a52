package slurm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"gonbatch/submit"
)

// Installed returns a function that reports whether the loader finds a shared library by its name:
// in LD_LIBRARY_PATH, or in the list that ldconfig keeps, which is read once.
func Installed(ctx context.Context, runner submit.Runner, getenv func(string) string) func(soname string) bool {
	known := sync.OnceValue(func() string { return ldconfig(ctx, runner) })
	return func(soname string) bool {
		for _, dir := range filepath.SplitList(getenv("LD_LIBRARY_PATH")) {
			if _, err := os.Stat(filepath.Join(dir, soname)); dir != "" && err == nil {
				return true
			}
		}
		return strings.Contains(known(), "\t"+soname+" ")
	}
}

// ldconfig lists the loader's libraries. Users' PATH often lacks /sbin. If there is no list, it
// returns "".
func ldconfig(ctx context.Context, runner submit.Runner) string {
	for _, name := range []string{"ldconfig", "/sbin/ldconfig"} {
		if out, err := runner.Run(ctx, name, "-p"); err == nil {
			return string(out)
		}
	}
	return ""
}
