package kernel

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// TestEndWithin: a kernel that does not end says where it hangs and exits.
func TestEndWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log bytes.Buffer
	exited := make(chan int)
	endWithin(ctx, time.Millisecond, &log, func(code int) { exited <- code })
	cancel()
	if code := <-exited; code != 1 || !strings.Contains(log.String(), "did not end within 1ms") || !strings.Contains(log.String(), "TestEndWithin(") {
		t.Errorf("exit code %d, logged\n%s", code, log.String())
	}
}
