package stage

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// gitTimeout bounds each question to git: a big repository must not hold up a submission.
const gitTimeout = 5 * time.Second

// gitState is the state of the repository that the notebook is in; nil where there is none, or no
// git, or no commit. It is dirty too where the notebook itself is not in the repository.
func gitState(ctx context.Context, runner submit.Runner, notebook string) *rundir.Git {
	dir, base := filepath.Split(notebook)
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	commit, err := runner.Run(ctx, "git", "-C", dir, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return nil
	}
	tracked, err := runner.Run(ctx, "git", "-C", dir, "status", "--porcelain", "--untracked-files=no")
	own, ownErr := runner.Run(ctx, "git", "-C", dir, "--literal-pathspecs", "status", "--porcelain", "--", base)
	dirty := err != nil || ownErr != nil || len(tracked) > 0 || len(own) > 0
	return &rundir.Git{Commit: strings.TrimSpace(string(commit)), Dirty: dirty}
}
