package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// job returns a job with targets, in a new run directory.
func job(t *testing.T, targets ...string) (submit.Shell, submit.JobSpec, *strings.Builder) {
	t.Helper()
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	return submit.Shell{Err: said, Environ: os.Environ(), Now: time.Now}, submit.JobSpec{Name: "mnist", RunDir: dir, Notify: targets}, said
}

// TestPosts: a URL gets the start and the end of a job, with its newest metrics.
func TestPosts(t *testing.T) {
	events := make(chan Event, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e Event
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %s", r.Method, err, text)
		}
		events <- e
	}))
	defer server.Close()
	shell, spec, said := job(t, server.URL+"/secret")
	end := Begin(shell, spec, "4711")
	if e := <-events; e.Event != "started" || e.Job != "4711" || e.Run != spec.RunDir.Name() || e.Text != "mnist (job 4711) started" || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
	if err := os.WriteFile(spec.RunDir.Metrics(), []byte(`{"step":1,"time":"2026-11-30T10:00:00Z","val/loss":2,"bad":"NaN"}`+"\n"+`{"step":2,"time":"2026-11-30T10:00:00Z","val/loss":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	end(0)
	if e := <-events; e.Event != "completed" || e.Metrics["val/loss"] != 1 || len(e.Metrics) != 1 {
		t.Errorf("%+v", e)
	}
	if said.String() != "" {
		t.Errorf("says %s", said)
	}
}

// TestProblems: a target that fails is a warning without the URL, and doesn't keep the others from
// getting the event.
func TestProblems(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	file := filepath.Join(t.TempDir(), "events")
	shell, spec, said := job(t, refusing.URL+"/token", gone.URL+"/token", "echo broken; exit 3", "echo $GONBATCH_EVENT $GONBATCH_TEXT >> "+file)
	if _, err := rundir.AddStart(spec.RunDir, "local"); err != nil {
		t.Fatal(err)
	}
	Begin(shell, spec, "")(rundir.RequeueCode)
	for _, want := range []string{"target 1: restarted: the server at", "answers 404 Not Found", "target 2: stopped: the server at", "can't be reached from", "target 3: stopped: exit status 3: broken"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	if strings.Contains(said.String(), "token") {
		t.Errorf("the URL is in %s", said)
	}
	run := spec.RunDir.Name()
	if text, err := os.ReadFile(file); err != nil || string(text) != "restarted mnist (run "+run+") restarted\nstopped mnist (run "+run+") stopped\n" {
		t.Errorf("%q, %v", text, err)
	}
}
