package executed

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/janpfeifer/gonb/gonbui"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/kernel/display"
	"gonbatch/submit"
)

// TestMain lets the test binary act as the program that attaches, and as a notebook's program with
// rich output.
func TestMain(m *testing.M) {
	switch os.Getenv("EXECUTED_TEST") {
	case "attach":
		program := os.Getenv("EXECUTED_PROGRAM")
		if program == "" {
			program = "show"
		}
		_ = os.Setenv("EXECUTED_TEST", program)
		os.Exit(attachForTest())
	case "results":
		display.Result(image.NewGray(image.Rect(0, 0, 9, 9)))
		if os.Args[len(os.Args)-1] == "text" {
			display.Result("only text")
		}
		os.Exit(0)
	case "serve":
		serveForTest(rundir.At(os.Getenv(rundir.EnvDir)), os.Getenv(rundir.EnvRecorder))
	case "wait":
		waitAndShow(os.Getenv("EXECUTED_SYNCED") != "")
	case "show":
		gonbui.DisplayHTML("<b>first</b>")
		gonbui.UpdateHTML("id", "<i>old</i>")
		_ = gonbui.DisplayImage(image.NewGray(image.Rect(0, 0, 2, 2)))
		gonbui.UpdateHTML("id", "<i>new</i>")
		gonbui.Sync()
		fmt.Println("shown")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// attachForTest runs a program as rank 0 does, and returns its exit code.
func attachForTest() int {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Env = os.Environ()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	started, ended, err := Attach(os.Getenv(rundir.EnvRecorder), os.Getenv(rundir.EnvCell), cmd)
	if err == nil {
		err = cmd.Start()
		started()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	_ = cmd.Wait() // Its state says more than its error.
	ended()
	return submit.ProcessCode(cmd.ProcessState)
}

// job is a run whose notebook has a declaration, a main cell that becomes a and a2, and two main
// cells that become b and c.
type job struct {
	t        *testing.T
	dir      rundir.Dir
	recorder *Recorder
	server   *Recording
	socket   string
}

func newJob(t *testing.T) *job {
	t.Helper()
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	nb, err := nbformat.Parse("x.ipynb", []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"markdown","id":"m","metadata":{},"source":"# Title"},
		{"cell_type":"code","id":"d","metadata":{"tags":["t"]},"source":"var x = 1","execution_count":9,"outputs":[{"output_type":"stream","name":"stdout","text":"old"}]},
		{"cell_type":"code","id":"a","metadata":{},"source":"%%","execution_count":null,"outputs":[]},
		{"cell_type":"code","id":"l","metadata":{},"source":"left()","execution_count":3,"outputs":[]},
		{"cell_type":"code","id":"b","metadata":{},"source":"%%","execution_count":null,"outputs":[]},
		{"cell_type":"code","id":"c","metadata":{},"source":"%%","execution_count":null,"outputs":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{Input: "/home/ada/x.ipynb", Cells: []rundir.Cell{{Name: "a", Number: 3}, {Name: "a2", Number: 3}, {Name: "b", Number: 5}, {Name: "c", Number: 6}}, LeftOut: []int{4}, Parameters: map[string]string{"n": "3"}}
	if err := Prepare(dir, nb, plan); err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, dir: dir}
	j.open()
	return j
}

// open starts a recorder, as each start of a job does.
func (j *job) open() {
	j.t.Helper()
	folder, err := os.MkdirTemp("", "executed-")
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if j.recorder, err = openRecorder(j.dir, time.Now); err != nil {
		j.t.Fatal(err)
	}
	j.recorder.Start("7", "n1")
	j.socket = filepath.Join(folder, "socket")
	if j.server, err = listen(j.socket, j.recorder, func(err error) { j.t.Error(err) }); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = j.server.Close() })
}

// run runs a program as rank 0 of a cell, and returns its exit code.
func (j *job) run(cell string, program ...string) int {
	j.t.Helper()
	log, err := os.OpenFile(j.dir.RankLog(0), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		j.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the program that writes it has its own handle
	cmd := exec.CommandContext(j.t.Context(), os.Args[0], program...)
	cmd.Env = append(os.Environ(), "EXECUTED_TEST=attach", rundir.EnvDir+"="+j.dir.Path(), rundir.EnvRecorder+"="+j.socket, rundir.EnvCell+"="+cell)
	cmd.Stdout, cmd.Stderr = log, log
	err = bounded.Run(cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// result is a cell's content at the end.
type result struct {
	Count   int
	Status  string
	Outputs string
}

// results reads the notebook from disk.
func (j *job) results() map[string]result {
	j.t.Helper()
	data, err := os.ReadFile(j.dir.Executed())
	if err != nil {
		j.t.Fatal(err)
	}
	nb, err := nbformat.Parse("executed.ipynb", data)
	if err != nil {
		j.t.Fatal(err)
	}
	all := map[string]result{}
	for _, cell := range nb.Cells {
		if cell.Type != nbformat.Code {
			continue
		}
		var times cellTimes
		if ok, err := cell.GetMetadata(papermillKey, &times); !ok || err != nil {
			j.t.Fatalf("cell %s has no times: %v", cell.ID, err)
		}
		r := result{Status: times.Status}
		if err := json.Unmarshal(cell.Field("execution_count"), &r.Count); err != nil {
			j.t.Fatal(err)
		}
		if (times.EndTime != nil) != (times.Status == completed || times.Status == failed) {
			j.t.Errorf("cell %s is %s and has ended %v", cell.ID, times.Status, times.EndTime)
		}
		r.Outputs = summary(j.t, cell.Field("outputs"))
		all[cell.ID] = r
	}
	return all
}

// summary returns a cell's outputs, one line each.
func summary(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var outputs []struct {
		Type   string            `json:"output_type"`
		Name   string            `json:"name"`
		Text   string            `json:"text"`
		Data   map[string]string `json:"data"`
		EName  string            `json:"ename"`
		EValue string            `json:"evalue"`
	}
	if err := json.Unmarshal(raw, &outputs); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	var lines []string
	for _, o := range outputs {
		line := o.Type + " " + o.Name + o.EName + " " + o.Text + o.EValue
		for _, mime := range slices.Sorted(maps.Keys(o.Data)) {
			line += mime + " " + o.Data[mime][:min(len(o.Data[mime]), 16)]
		}
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return strings.Join(lines, "|")
}

func TestRun(t *testing.T) {
	j := newJob(t)
	if code := j.run("a", "bash", "-c", "echo one; echo two >&2; exit 0"); code != 0 {
		t.Errorf("exit code %d", code)
	}
	j.run("a2", "bash", "-c", "cat; echo shell")
	if code := j.run("b", os.Args[0]); code != 0 {
		t.Errorf("what shows things ended with code %d", code)
	}
	j.run("c", "bash", "-c", `kill -9 $$`)
	if err := j.server.End(Outcome{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]result{
		"d": {Count: 1, Status: completed}, "a": {2, completed, "stream stdout one|stream stderr two|stream stdout shell"}, "l": {Status: pending},
		"b": {3, completed, "display_data  text/html <b>first</b>|display_data  text/html <i>new</i>|display_data  image/png iVBORw0KGgoAAAAN|stream stdout shown"},
		"c": {4, completed, ""},
	}
	if diff := cmp.Diff(want, j.results()); diff != "" {
		t.Error(diff)
	}
	log, err := os.ReadFile(j.dir.RankLog(0))
	if err != nil || string(log) != "one\ntwo\nshell\nshown\n" {
		t.Errorf("log %q, %v", log, err)
	}
}

// TestResult: the last expression's value is shown after a program's end, and its text is in the
// log. What an earlier start has left isn't shown.
func TestResult(t *testing.T) {
	t.Setenv("EXECUTED_PROGRAM", "results")
	j := newJob(t)
	if err := os.WriteFile(j.dir.Result(), []byte(`{"text/html": "old"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	j.run("a", "true")
	j.run("a2", os.Args[0])
	j.run("b", os.Args[0], "text")
	if err := j.server.End(Outcome{}); err != nil {
		t.Fatal(err)
	}
	got := j.results()
	for id, want := range map[string]string{
		"a": "stream stdout *image.Gray (9,9)|display_data  image/png iVBORw0KGgoAAAANtext/plain *image.Gray (9,9",
		"b": "stream stdout *image.Gray (9,9)\nonly text",
	} {
		if got[id].Outputs != want {
			t.Errorf("cell %s shows %q, want %q", id, got[id].Outputs, want)
		}
	}
	if _, err := os.Stat(j.dir.Result()); err == nil {
		t.Error("the file of the result stays")
	}
}

// TestFailure: the failed cell says why, and the cells after it have no outputs.
func TestFailure(t *testing.T) {
	for _, tt := range []struct {
		name, program string
		outcome       Outcome
		want          string
	}{
		{"exit", "echo x; exit 3", Outcome{Code: 3}, "stream stdout x|error ExitError exit code 3"},
		{"panic", "echo 'panic: no data' >&2; echo >&2; echo 'goroutine 1 [running]:' >&2; exit 2", Outcome{Code: 2},
			"stream stderr panic: no data\n\ngoroutine 1 [running]:|error panic no data"},
		{"another rank", "sleep 0.01", Outcome{Code: 1, Failure: &rundir.Failure{Rank: 3, Host: "n4", Error: "boom\n"}}, "error ExitError boom"},
		{"cancelled", "sleep 0.01", Outcome{Code: 1, State: "cancelled", Reason: "by ada"}, "error Cancelled by ada"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := newJob(t)
			j.run("a", "true")
			j.run("a2", "true")
			j.run("b", "bash", "-c", tt.program)
			if err := j.server.End(tt.outcome); err != nil {
				t.Fatal(err)
			}
			got := j.results()
			if diff := cmp.Diff(result{3, failed, tt.want}, got["b"]); diff != "" {
				t.Error(diff)
			}
			if got["a"].Status != completed || got["c"].Status != pending || got["c"].Outputs != "" || got["c"].Count != 0 {
				t.Errorf("before %+v, behind %+v", got["a"], got["c"])
			}
		})
	}
}

// TestFailureBeforeTheProgram: a cell that could not be started is the one that failed.
func TestFailureBeforeTheProgram(t *testing.T) {
	j := newJob(t)
	j.run("a", "true")
	j.run("a2", "true")
	if err := j.server.End(Outcome{Code: 1, Cell: "b"}); err != nil {
		t.Fatal(err)
	}
	if got := j.results(); got["a"].Status != completed || got["b"].Status != failed {
		t.Errorf("%+v", got)
	}
}

// TestWhileItRuns: the notebook on disk grows with the output.
func TestWhileItRuns(t *testing.T) {
	j := newJob(t)
	ended := make(chan int, 1)
	release := filepath.Join(t.TempDir(), "release")
	go func() {
		ended <- j.run("a", "bash", "-c", `echo early; while [ ! -e "$0" ]; do sleep 0.05; done; echo late`, release)
	}()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if got := j.results()["a"]; got == (result{2, running, "stream stdout early"}) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("the notebook has %+v", got)
		}
	}
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// TestRestart: a restarted job continues its notebook.
func TestRestart(t *testing.T) {
	j := newJob(t)
	j.run("a", "echo", "first")
	j.run("a2", "echo", "second")
	j.run("b", "echo", "half")
	if err := j.server.Close(); err != nil {
		t.Fatal(err)
	}
	j.open()
	j.run("b", "echo", "rest")
	j.run("c", "echo", "all")
	if err := j.server.End(Outcome{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]result{
		"d": {Count: 1, Status: completed}, "a": {2, completed, "stream stdout first\nsecond"}, "l": {Status: pending},
		"b": {3, completed, "stream stdout half\nrest"}, "c": {4, completed, "stream stdout all"},
	}
	if diff := cmp.Diff(want, j.results()); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutRecorder: a program whose recorder is gone still runs, with its output in its log.
func TestWithoutRecorder(t *testing.T) {
	j := newJob(t)
	if err := j.server.Close(); err != nil {
		t.Fatal(err)
	}
	if code := j.run("a", "bash", "-c", "echo alone; exit 5"); code != 5 {
		t.Errorf("exit code %d", code)
	}
	log, err := os.ReadFile(j.dir.RankLog(0))
	note, rest, _ := strings.Cut(string(log), "\n")
	if err != nil || rest != "alone\n" || !strings.Contains(note, "from here on the output is only in this log, not in executed.ipynb") {
		t.Errorf("log %q, %v", log, err)
	}
}

// TestSettleBeforeTheBegin: a job that was cancelled while it waited, or whose script never started
// recording, is no longer pending.
func TestSettleBeforeTheBegin(t *testing.T) {
	for _, tt := range []struct {
		outcome     Outcome
		state, want string
	}{
		{Outcome{Code: 1, State: "cancelled", Reason: "in the queue"}, "cancelled", "error Cancelled in the queue"},
		{Outcome{}, pending, ""},
	} {
		dir, err := rundir.Create(t.TempDir(), "x", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		nb, err := nbformat.Parse("x.ipynb", []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
			{"cell_type":"code","id":"a","metadata":{},"source":"%%","execution_count":null,"outputs":[]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := Prepare(dir, nb, Plan{Input: "x.ipynb", Cells: []rundir.Cell{{Name: "a", Number: 1}}}); err != nil {
			t.Fatal(err)
		}
		if err := Settle(dir, time.Now, tt.outcome); err != nil {
			t.Fatal(err)
		}
		r, err := openRecorder(dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		got := summary(t, (&job{t: t, dir: dir}).cell("a"))
		if r.notes.State != tt.state || got != tt.want {
			t.Errorf("state %q with %q, want %q with %q", r.notes.State, got, tt.state, tt.want)
		}
	}
}

// cell returns a cell's output in the notebook on disk.
func (j *job) cell(id string) json.RawMessage {
	j.t.Helper()
	data, err := os.ReadFile(j.dir.Executed())
	if err != nil {
		j.t.Fatal(err)
	}
	nb, err := nbformat.Parse("executed.ipynb", data)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, cell := range nb.Cells {
		if cell.ID == id {
			return cell.Field("outputs")
		}
	}
	return nil
}

// TestSettle: the end of a job whose recorder was killed comes from the scheduler, and is noted
// once.
func TestSettle(t *testing.T) {
	j := newJob(t)
	j.run("a", "echo", "x")
	j.run("a2", "echo", "y")
	j.run("b", "echo", "z")
	if err := j.server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"time limit", "something else"} {
		if err := Settle(j.dir, time.Now, Outcome{Code: 1, State: "timed out", Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(result{3, failed, "stream stdout z|error Timed out time limit"}, j.results()["b"]); diff != "" {
		t.Error(diff)
	}
	if err := Settle(rundir.At(t.TempDir()), time.Now, Outcome{}); err != nil {
		t.Errorf("a run without an executed notebook: %v", err)
	}
}
