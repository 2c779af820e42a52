package trainer_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed/ranktest"
	"gonbatch/logger"
	"gonbatch/tests/tmpfs"
	"gonbatch/trainer"
)

// silence returns the address of a server that accepts and never answers.
func silence(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String()
}

// TestLoggersNeverStop: whatever happens to the loggers, the training ends well, and metrics.jsonl
// is complete.
func TestLoggersNeverStop(t *testing.T) {
	tests := []struct {
		name string
		harm func(t *testing.T, run string)
		want string // In the loggers' error at the end.
	}{
		{"an MLflow server that never answers", func(t *testing.T, _ string) { t.Setenv("MLFLOW_TRACKING_URI", silence(t)) }, "Client.Timeout exceeded"},
		{"no MLflow server", func(t *testing.T, _ string) { t.Setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1") }, "connection refused"},
		{"a full disk for event files", func(t *testing.T, run string) { tmpfs.Mount(t, filepath.Join(run, "tensorboard"), "size=32k") }, "no space left on device"},
		{"a full disk for curves", func(t *testing.T, run string) { tmpfs.Mount(t, filepath.Join(run, "curves"), "size=4k") }, "no space left on device"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := t.TempDir()
			t.Setenv("GONBATCH_RUN_DIR", run)
			t.Setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "0.3")
			test.harm(t, run)
			tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 4, BatchSize: 12, LogEvery: 4, LogHistogramsEvery: 1}, blobTask(plainNet))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
				t.Fatal(err)
			}
			if err := tr.Logger().Close(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the loggers end with %v, want %q", err, test.want)
			}
			lines, err := os.ReadFile(filepath.Join(run, "metrics.jsonl"))
			if n := bytes.Count(lines, []byte("\n")); err != nil || n != 12 {
				t.Errorf("%d lines of metrics, %v, want 12:\n%s", n, err, lines)
			}
		})
	}
}

// hanging never returns from a record.
type hanging struct {
	logger.Logger
	release chan struct{}
}

func (h hanging) Scalars(int64, map[string]float64) error { <-h.release; return nil }
func (h hanging) Params(map[string]any) error             { panic("no parameters, please") }

// TestOwnLoggerHangs: the user's own logger can't stop the training either.
func TestOwnLoggerHangs(t *testing.T) {
	own := hanging{release: make(chan struct{})}
	defer close(own.release)
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 4, BatchSize: 12, LogEvery: 4}, blobTask(plainNet), trainer.WithLogger(own))
	ended := make(chan error, 1)
	go func() { ended <- tr.Fit(t.Context(), ranktest.Blobs(145), nil) }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("the training waits for the logger")
	}
}
