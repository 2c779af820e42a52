package tests

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
	"gonbatch/tests/jupyter"
)

//go:embed executed.py
var executedScript string

// executedNotebook is what Jupyter's own tools find in an executed notebook.
type executedNotebook struct {
	Cells    []executedCell
	Metadata struct {
		Papermill struct {
			Exception  *bool
			Duration   float64
			InputPath  string `json:"input_path"`
			OutputPath string `json:"output_path"`
			Parameters map[string]string
		}
		Gonbatch struct {
			State string
			JobID string `json:"job_id"`
		}
	}
	HTML    string
	Failure string
}

// jupyterReader is the process that reads the executed notebooks of all tests: to load nbconvert
// takes longer than to read one.
var jupyterReader struct {
	sync.Mutex
	names   io.WriteCloser
	answers *json.Decoder
	end     func() error
}

func startJupyterReader(t *testing.T) {
	t.Helper()
	cmd := exec.Command(jupyter.Python(t), "-c", executedScript)
	cmd.Stderr = os.Stderr
	names, err := cmd.StdinPipe()
	ok(t, err)
	answers, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	jupyterReader.names, jupyterReader.answers = names, json.NewDecoder(answers)
	jupyterReader.end = func() error { return errors.Join(names.Close(), cmd.Wait()) }
}

type executedCell struct {
	Count               int
	Status, Text, Error string
	Types               []string
}

// executedOf reads a run's executed notebook with nbformat and nbconvert.
func executedOf(t *testing.T, run rundir.Dir) executedNotebook {
	t.Helper()
	jupyterReader.Lock()
	defer jupyterReader.Unlock()
	if jupyterReader.names == nil {
		startJupyterReader(t)
	}
	_, err := fmt.Fprintln(jupyterReader.names, run.Executed())
	ok(t, err)
	var nb executedNotebook
	ok(t, jupyterReader.answers.Decode(&nb))
	if nb.Failure != "" {
		t.Fatalf("%s\n%s", nb.Failure, read(t, run.Executed()))
	}
	return nb
}

const (
	// declarations holds the imports of the cells, and a parameter.
	declarations = "import (\n\t\"fmt\"\n\t\"os\"\n\t\"image\"\n\t\"github.com/janpfeifer/gonb/gonbui\"\n\t\"github.com/janpfeifer/gonb/gonbui/protocol\"\n)\nvar name = \"Ada\""
	// shows prints to both streams, and displays HTML, an image and a chart.
	shows = `%%
fmt.Println("hello", name)
fmt.Fprintln(os.Stderr, "a warning")
gonbui.DisplayHTML("<b id=\"bold\">bold</b><script>draw()</script>")
gonbui.DisplayImage(image.NewGray(image.Rect(0, 0, 3, 3)))
gonbui.SendData(&protocol.DisplayData{Data: map[protocol.MIMEType]any{"application/vnd.plotly.v1+json": "{\"data\": []}"}})
gonbui.Sync()`
	// ends has a value, which is an image.
	ends = "%%\nsquare := image.NewRGBA(image.Rect(0, 0, 4, 4))\nsquare"
	// fails panics in rank 0 only. If another rank failed first, rank 0 would be killed before it
	// printed why it failed.
	fails = `%%
fmt.Println("before")
if os.Getenv("OMPI_COMM_WORLD_RANK")+os.Getenv("SLURM_PROCID") == "1" {
	return
}
panic("no data")`
)

// TestExecuted checks that the executed notebook has the output of each cell, on this machine,
// under mpirun and on a cluster, and that Jupyter's tools read it.
func TestExecuted(t *testing.T) {
	t.Parallel()
	jupyter.Python(t)
	c := cluster.Start(t)
	for _, tt := range []struct {
		name  string
		user  user
		flags []string
	}{
		{"one rank", newUser(t), []string{"--local"}},
		{"two ranks", newUser(t), []string{"--local", "--tasks", "2"}},
		{"two nodes", newUser(t, c.Env()...), []string{"--nodes", "2", "--mpi", "pmix", "--follow"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := tt.user
			name := u.write(t, "demo.ipynb", declarations, "!echo from a shell; echo oops >&2", shows, ends, fails, "%%\nfmt.Println(\"never\")")
			out, err := u.submit(t, append(tt.flags, name)...)
			if err == nil {
				t.Fatalf("the run succeeded:\n%s", out)
			}
			run := u.run(t)
			checkExecuted(t, u, run, executedOf(t, run))
			wantAll(t, read(t, run.RankLog(0)), "from a shell\noops\n", "hello Ada\na warning\n", "panic: no data")
			checkFrom(t, u, run, tt.flags)
		})
	}
}

// checkFrom fixes the failed cell and runs the notebook from there. The output of earlier cells
// comes from the failed run.
func checkFrom(t *testing.T, u user, failed rundir.Dir, flags []string) {
	t.Helper()
	name := u.write(t, "demo.ipynb", declarations, "!echo from a shell; echo oops >&2", shows, ends, "%%\nfmt.Println(\"fixed\")", "%%\nfmt.Println(\"never\")")
	u.mustSubmit(t, append(flags, "--from", "cell-e", name)...)
	runs, err := rundir.List(filepath.Join(u.folder, "runs"))
	if err != nil || len(runs) != 2 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	run := runs[0]
	if run == failed {
		run = runs[1]
	}
	want := executedOf(t, failed).Cells
	want[4] = executedCell{Count: 5, Status: "completed", Text: "stdout: fixed\n", Types: []string{}}
	want[5] = executedCell{Count: 6, Status: "completed", Text: "stdout: never\n", Types: []string{}}
	if diff := cmp.Diff(want, executedOf(t, run).Cells); diff != "" {
		t.Error(diff)
	}
	if log := read(t, run.RankLog(0)); log != "fixed\nnever\n" {
		t.Errorf("other cells ran as well:\n%s", log)
	}
}

func checkExecuted(t *testing.T, u user, run rundir.Dir, nb executedNotebook) {
	t.Helper()
	failed := nb.Cells[4]
	wantAll(t, failed.Error, "panic: no data", "demo.ipynb, cell 5 (id cell-e)", "demo.ipynb[cell 5]:6")
	nb.Cells[4].Error, nb.Cells[4].Text = "", strings.SplitAfterN(failed.Text, "\n", 2)[0]
	want := []executedCell{
		{Count: 1, Status: "completed", Types: []string{}},
		{Count: 2, Status: "completed", Types: []string{}, Text: "stdout: from a shell\nstderr: oops\n"},
		{Count: 3, Status: "completed", Text: "stdout: hello Ada\nstderr: a warning\n", Types: []string{"application/vnd.plotly.v1+json", "image/png", "text/html"}},
		{Count: 4, Status: "completed", Text: "stdout: *image.RGBA (4,4)\n", Types: []string{"image/png", "text/plain"}},
		{Count: 5, Status: "failed", Types: []string{}, Text: "stdout: before\n"},
		{Status: "pending", Types: []string{}},
	}
	if diff := cmp.Diff(want, nb.Cells); diff != "" {
		t.Error(diff)
	}
	p := nb.Metadata.Papermill
	if p.Exception == nil || !*p.Exception || p.Duration <= 0 || p.InputPath != filepath.Join(u.folder, "demo.ipynb") || p.OutputPath != run.Executed() {
		t.Errorf("papermill's metadata: %+v", p)
	}
	if m, err := rundir.ReadManifest(run); err != nil || nb.Metadata.Gonbatch.State != "failed" || nb.Metadata.Gonbatch.JobID != m.JobID {
		t.Errorf("metadata %+v, job %s, %v", nb.Metadata.Gonbatch, m.JobID, err)
	}
	for _, part := range []string{`<b id="bold">bold</b>`, "data:image/png;base64,", "no data"} {
		if !strings.Contains(nb.HTML, part) {
			t.Errorf("nbconvert's page has no %s", part)
		}
	}
}

// TestExecutedIsBounded checks that the notebook of a program that prints a lot stays small, and
// that its log has everything.
func TestExecutedIsBounded(t *testing.T) {
	const size = 50 << 20
	u := newUser(t)
	name := u.write(t, "much.ipynb", "%%\nline := strings.Repeat(\"x\", 1<<20-1) + \"\\n\"\nfmt.Println(\"first\")\nfor range 50 {\n\tos.Stdout.WriteString(line)\n}\nfmt.Println(\"last\")")
	if out, err := u.submit(t, "--local", name); err != nil {
		t.Fatalf("%v\n%.1000s", err, out)
	}
	run := u.run(t)
	text := executedOf(t, run).Cells[0].Text
	wantAll(t, text[:30], "stdout: first\nxxx")
	wantAll(t, text[len(text)-20:], "xxx\nlast\n")
	wantAll(t, strings.ReplaceAll(text, strings.Repeat("x", 1<<10), ""), "bytes of output are left out here; logs/rank-0.log has them all]")
	info, err := os.Stat(run.Executed())
	if log, logErr := os.Stat(run.RankLog(0)); err != nil || logErr != nil || info.Size() > 1<<20 || log.Size() != size+11 {
		t.Errorf("a notebook of %v bytes (%v), a log of %v (%v), want a log of %d", info.Size(), err, log.Size(), logErr, size+11)
	}
}

// TestExecutedOfAKilledJob checks that the executed notebook of a cancelled or killed job says how
// the job ended, even if no process of the job was left to write it.
func TestExecutedOfAKilledJob(t *testing.T) {
	t.Parallel()
	jupyter.Python(t)
	c := cluster.Start(t)
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, u user, id string)
	}{
		{"cancelled", func(t *testing.T, u user, id string) { u.mustSubmit(t, "cancel", id) }},
		{"killed", func(t *testing.T, u user, id string) {
			if _, err := c.Run("scancel", "--full", "--signal=KILL", id); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, c.Env()...)
			name := u.write(t, "long.ipynb", "!echo prepared", "%%\nfmt.Println(\"started\")\ntime.Sleep(time.Hour)")
			id := job(t, u.mustSubmit(t, name))
			run := u.run(t)
			eventually(t, "the notebook has what the program printed", func() bool {
				text, err := os.ReadFile(run.Executed())
				return err == nil && strings.Contains(string(text), `"started\n"`)
			})
			tt.end(t, u, id)
			eventually(t, "the notebook knows the job's end", func() bool {
				_, err := u.submit(t, "status", id)
				text, readErr := os.ReadFile(run.Executed())
				return err == nil && readErr == nil && strings.Contains(string(text), `"output_type": "error"`)
			})
			nb := executedOf(t, run)
			if nb.Cells[0].Status != "completed" || nb.Cells[1].Status != "failed" || nb.Cells[1].Text != "stdout: started\n" {
				t.Errorf("%+v", nb.Cells)
			}
		})
	}
}

// TestExecutedOfARestart checks that a cell that saves, stops and starts again has the output of
// both starts, and that the log does too.
func TestExecutedOfARestart(t *testing.T) {
	t.Parallel()
	jupyter.Python(t)
	cells := []string{"!echo prepared", "%%\nif os.Getenv(\"GONBATCH_RESTARTS\") == \"0\" {\n\tfmt.Println(\"first start\")\n\t_ = os.WriteFile(os.Getenv(\"GONBATCH_STOPPED\"), nil, 0o600)\n\tos.Exit(75)\n}\nfmt.Println(\"second start\")"}
	check := func(t *testing.T, run rundir.Dir) {
		t.Helper()
		want := []executedCell{
			{Count: 1, Status: "completed", Text: "stdout: prepared\n", Types: []string{}},
			{Count: 2, Status: "completed", Text: "stdout: first start\nsecond start\n", Types: []string{}},
		}
		nb := executedOf(t, run)
		if diff := cmp.Diff(want, nb.Cells); diff != "" {
			t.Error(diff)
		}
		if state := nb.Metadata.Gonbatch.State; state != "completed" {
			t.Errorf("the notebook is %s", state)
		}
		if log := read(t, run.RankLog(0)); log != "prepared\nfirst start\nsecond start\n" {
			t.Errorf("log %q", log)
		}
	}
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		u := newUser(t)
		if out, err := u.submit(t, "--local", u.write(t, "twice.ipynb", cells...)); err == nil {
			t.Fatalf("the run was not stopped:\n%s", out)
		}
		run := u.run(t)
		if nb := executedOf(t, run); nb.Metadata.Gonbatch.State != "stopped" || nb.Cells[1].Status != "running" {
			t.Errorf("stopped: %+v", nb.Cells)
		}
		u.mustSubmit(t, "resume", run.Name())
		check(t, run)
	})
	t.Run("on the cluster", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, cluster.Start(t).Env()...)
		u.mustSubmit(t, "--nodes", "2", "--mpi", "none", "--follow", u.write(t, "twice.ipynb", cells...))
		check(t, u.run(t))
	})
}
