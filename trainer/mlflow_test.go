package trainer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/logger"
)

// TestMLflowRunGoesOn: the starts of a job log to one MLflow run, even if its first start began
// the training over; another job that begins it over has a run of its own.
func TestMLflowRunGoesOn(t *testing.T) {
	var created atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := "earlier"
		if strings.HasSuffix(r.URL.Path, "runs/create") {
			id = fmt.Sprint("new", created.Add(1))
		}
		_, _ = fmt.Fprintf(w, `{"experiment": {"experiment_id": "1"}, "run": {"info": {"run_id": %q, "artifact_uri": "file:///x"}}}`, id)
	}))
	defer server.Close()
	tests := []struct {
		resume string
		start  int
		goesOn bool
	}{
		{"auto", 1, true}, {"auto", 2, true}, {"must", 1, true},
		{"never", 1, false}, {"never", 2, true}, {"never", 3, true},
	}
	run := rundir.At(t.TempDir())
	for _, tt := range tests {
		env := environment{Env: rundir.Env{Dir: run, Start: tt.start}, mlflow: logger.MLflowOptions{TrackingURI: server.URL}}
		config := Config{Name: "main", Checkpoint: CheckpointConfig{Resume: "auto"}}
		open := func() int64 {
			before := created.Load()
			l, err := openMLflow(config, env)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Log(err) // The server knows little of MLflow.
			}
			return created.Load() - before
		}
		open()
		config.Checkpoint.Resume = tt.resume
		if got := open() == 0; got != tt.goesOn {
			t.Errorf("resume %s, start %d: goes on with the run: %v, want %v", tt.resume, tt.start, got, tt.goesOn)
		}
	}
}
