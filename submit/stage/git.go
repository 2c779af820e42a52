package stage

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// gitTimeout bounds the commands of git: a big repository must not delay a submission.
const gitTimeout = 5 * time.Second

// gitState returns the state of the notebook's repository; nil if there is no repository, git or
// commit. The state is also dirty if the notebook itself is not committed.
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
