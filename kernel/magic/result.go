package magic

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/rundir"
)

// result shows what a run left behind: {"job", "run", "state", "metrics": {NAME: last value}, "checkpoints", "files"} as JSON.
func (m *Magics) result(ctx context.Context, s Session, args string) error {
	job, err := m.jobOf(strings.TrimSpace(args))
	if err != nil {
		return fmt.Errorf("%%result: %w", err)
	}
	now, err := m.ask(ctx, job)
	if err != nil {
		return fmt.Errorf("%%result: %w", err)
	}
	data := map[string]any{
		"job": now.Job.ID, "run": now.Run, "state": now.State, "directory": now.Job.Dir, "step": now.Step, "metrics": now.Metrics, "losses": now.Losses,
		"checkpoints": pathsIn(rundir.At(now.Job.Dir).Checkpoints()), "files": pathsIn(now.Job.Dir),
	}
	text := textResult(now, data["checkpoints"].([]string))
	if _, err := json.Marshal(data); err != nil {
		return err
	}
	s.Display("gonbatch-result-"+now.Job.ID, map[string]any{"text/plain": text, "application/json": data})
	return nil
}

func textResult(now state, checkpoints []string) string {
	lines := []string{now.title()}
	if now.Step > 0 {
		lines = append(lines, fmt.Sprintf("step: %d", now.Step))
	}
	for _, name := range slices.Sorted(maps.Keys(now.Metrics)) {
		lines = append(lines, fmt.Sprintf("%s: %g", name, now.Metrics[name]))
	}
	for _, path := range checkpoints {
		lines = append(lines, "checkpoint: "+path)
	}
	return strings.Join(append(lines, "run directory: "+now.Job.Dir), "\n")
}

// pathsIn are the paths of what is in a folder.
func pathsIn(dir string) []string {
	paths := []string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return paths
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}
