package build

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

// Check compiles every program of the module, which m.Write has written to moduleDir, without
// linking, and returns go vet's findings in the cells, and the calls whose error is ignored.
// Mistakes in cells are an *Error. Findings of an earlier call for the same programs are reused.
func Check(ctx context.Context, moduleDir string, m *export.Module, opt Options) ([]Problem, error) {
	tools, err := findToolchain(ctx, moduleDir, opt)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", m.Notebook, err)
	}
	hash, err := contentHash(m, tools)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", m.Notebook, err)
	}
	known := filepath.Join(opt.CacheDir, "check", hash[:32]+".json")
	var problems []Problem
	if rundir.ReadJSON(known, &problems) == nil {
		return problems, nil
	}
	ignored, err := dropped(ctx, m, tools)
	if err != nil {
		return nil, err
	}
	problems, err = vet(ctx, m, tools)
	if err != nil {
		return nil, err
	}
	problems = append(problems, ignored...)
	_ = writeProblems(known, problems) // If the cache is read-only for us, the next call checks again.
	return problems, nil
}

// coverageFlags are go build's flags for coverage; true if they take a value.
var coverageFlags = map[string]bool{"-cover": false, "-covermode": true, "-coverpkg": true}

// withoutCoverage returns the %goflags for a check. Coverage doesn't change a check's findings, go
// vet has no flags for it, and Go 1.26's go list -test fails with them.
func withoutCoverage(flags []string) (kept []string) {
	for i := 0; i < len(flags); i++ {
		name, _, hasValue := strings.Cut("-"+strings.TrimLeft(flags[i], "-"), "=")
		takesValue, coverage := coverageFlags[name]
		switch {
		case !coverage:
			kept = append(kept, flags[i])
		case takesValue && !hasValue:
			i++
		}
	}
	return kept
}

// keptChecks is how many results of checks stay in the cache; the newest stay.
const keptChecks = 200

func writeProblems(path string, problems []Problem) error {
	data, err := json.Marshal(problems)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := rundir.WriteFileAtomic(path, data, 0o644); err != nil {
		return err
	}
	return keepNewest(filepath.Dir(path), keptChecks)
}

// keepNewest removes all but the newest files of a folder.
func keepNewest(dir string, keep int) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= keep {
		return err
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), ".json") {
			files = append(files, info)
		}
	}
	for _, file := range beyond(keep, files) {
		if err := os.Remove(filepath.Join(dir, file.Name())); err != nil {
			return err
		}
	}
	return nil
}
