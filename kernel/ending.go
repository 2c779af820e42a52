package kernel

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"
)

// endTime is how long a kernel may take to end: clients get their last messages, and GoNB and gopls
// a few seconds.
const endTime = time.Minute

// endWithin calls exit if the process still runs the given time after ctx has ended, and logs where
// each goroutine is. A kernel that hangs at its end would stay forever, because nothing waits for
// it. Its guard removes what it leaves.
func endWithin(ctx context.Context, limit time.Duration, log io.Writer, exit func(code int)) {
	context.AfterFunc(ctx, func() {
		time.Sleep(limit)
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(log, "kernel: it did not end within %v:\n%s\n", limit, stacks[:runtime.Stack(stacks, true)])
		exit(1)
	})
}
