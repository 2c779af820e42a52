package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// ranksProgram is the end of the path of the script that starts the ranks of a cell's program.
const ranksProgram = "/seed/ranks"

// ranksOf returns the number of ranks that a command starts. If it is not ranksProgram, it is one
// rank: 0, unless the user's environment says another; those before it count too.
func ranksOf(command []string, cellDir string, getenv func(string) string) (int, error) {
	if !strings.HasSuffix(command[0], ranksProgram) {
		ranks, _ := cluster.Detect(getenv) // Programs that use ranks fail on invalid values.
		return ranks.Rank + 1, nil
	}
	file := filepath.Join(cellDir, "ranks")
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	ranks := 0
	if _, err := fmt.Sscan(string(text), &ranks); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return ranks, nil
}

// shareKept gives rank 0's kept values to the other ranks that have none. They would load rank 0's
// own files, which rank 0 may already have replaced when a slower rank begins. The values are
// links: a new value is always a new file.
func shareKept(keepDir string, ranks int) error {
	if ranks < 2 {
		return nil
	}
	files, err := os.ReadDir(keepDir)
	if err != nil {
		return err
	}
	for _, file := range files {
		name, _, _ := strings.Cut(file.Name(), ".")
		own := rundir.KeptValue(keepDir, name, 0)
		if filepath.Base(own) != file.Name() {
			continue // Another rank's, or no value.
		}
		for rank := 1; rank < ranks; rank++ {
			if err := os.Link(own, rundir.KeptValue(keepDir, name, rank)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return nil
}
