package magic

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
)

// small is a session whose notebook is a few cells.
type small struct {
	cells []string
	// earlier are the cells' earlier sources.
	earlier []string

	mu        sync.Mutex
	text      strings.Builder
	cards     []string
	declared  []string
	interrupt bool
}

func (s *small) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *small) Print(text string) { s.locked(func() { s.text.WriteString(text) }) }
func (s *small) Display(id string, bundle map[string]any) {
	s.locked(func() { s.cards = append(s.cards, fmt.Sprint("new ", id, " ", bundle["text/plain"])) })
}
func (s *small) Update(id string, bundle map[string]any) {
	s.locked(func() { s.cards = append(s.cards, fmt.Sprint("same ", id, " ", bundle["text/plain"])) })
}
func (s *small) Declare(imported, declaration string) error {
	s.locked(func() { s.declared = append(s.declared, imported+"; "+declaration) })
	return nil
}
func (s *small) Interrupted() (stop bool) { s.locked(func() { stop = s.interrupt }); return stop }
func (s *small) Cells() []Cell            { return cellsWith(s.cells) }
func (s *small) Current() Cell            { return Cell{First: 9, Last: 9} }
func (s *small) Declared() []string {
	return gocell.Session(append(slices.Clone(s.earlier), s.cells...))
}

// program is a submit command that queues a notebook as job 7 and prints that; the job ends after
// three status requests. It writes its arguments to the file `args`, and the notebook to
// `notebook`.
const program = `#!/bin/bash
here=$(dirname "$0")
echo "$*" >>"$here/args"
case "$1" in
  status)
    [ -n "$2" ] || { echo "JOB  STATE"; exit; }
    shift # --json
    [ "$2" = 404 ] && { echo "submit: no run is called 404" >&2; exit 1; }
    [ "$2" = noslurm ] && { echo "submit: squeue not found: is SLURM installed here?" >&2; exit 1; }
    echo . >>"$here/asked"
    [ "$2" = 88 ] && [ "$(wc -l <"$here/asked")" -lt 3 ] && { echo '{"version":1,"state":"unknown","message":"unknown: late","error":"late"}'; exit; }
    state=running
    [ "$(wc -l <"$here/asked")" -ge 3 ] && state=$(cat "$here/end")
    failure='' ended=true
    [ "$state" != running ] || ended=false
    [ "$state" = running ] || [ "$state" = completed ] || failure='rank 1 said no'
    printf '{"version":1,"run":"mnist-1","state":"%s","message":"%s","ended":%s,"directory":"%s","failure":"%s"}' "$state" "$state" "$ended" "$here/run" "$failure" ;;
  logs) [ "$2" != 404 ] && echo "the log" || { echo "submit: no run is called 404" >&2; exit 1; } ;;
  cancel) [ "$2" != 404 ] || { echo "submit: no run is called 404" >&2; exit 1; }; echo "failed" >"$here/end"; echo "job 7 is cancelled" ;;
  *)
    for word; do case "$word" in *.ipynb) cp "$word" "$here/notebook" ;; refuse) echo "submit: refused" >&2; exit 2 ;;
      --dry-run) echo '{"version":1,"scheduler":"slurm","name":"mnist","nodes":1,"ranks":1,"script":"#!/bin/bash\nsrun train\n"}'; exit ;; esac; done
    echo '{"version":1,"run":"mnist-1","directory":"'"$here/run"'","scheduler":"slurm","job":"7","name":"mnist","nodes":2,"ranks":2}' ;;
esac
`

func newMagics(t *testing.T, end string) (*Magics, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"submit": program, "end": end} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder := func() string { return dir }
	return New(Options{
		Program: filepath.Join(dir, "submit"), Environ: os.Environ(), Dir: folder, NotebookDir: folder, Kept: "/tmp/kept", Poll: time.Millisecond,
		Module: func() (string, error) { return "", errors.New("no module yet") },
	}), dir
}

func TestRun(t *testing.T) {
	tests := []struct {
		name  string
		call  cell.Magic
		cells []string
		args  string // the submit command's first arguments
		text  string
		err   string
		// earlier are the cells' earlier sources.
		earlier []string
		// program is the submit command, if it is not the usual one.
		program string
	}{
		{
			name: "submit", call: cell.Magic{Name: "submit", Args: `--nodes 2 -p "a=b c" -- -epochs 3`}, cells: []string{"var x int", "%%\nx++"},
			args: `--json --name notebook --of notebook.ipynb --nodes 2 -p a=b c .session-*.ipynb -- -epochs 3`, text: "submitting this session: 2 cells",
		},
		{
			name: "with values of a result", call: cell.Magic{Name: "submit"}, cells: []string{"%%\n1", "%result 6 as r\nr.Metrics()"},
			text: "left out, since a job has no values of %result: cell [2] (it uses r)\nsubmitting this session: 1 cell",
		},
		{
			name: "after an edit", call: cell.Magic{Name: "submit"}, earlier: []string{"func a() {}\nfunc (t T) String() string { return \"\" }\nvar b int"},
			cells: []string{"type T int\nfunc a() {}", "%%\n1"}, text: "warning: the session still has T~String, b, which no cell declares any more, " +
				"so the job runs without: forget it here too with %rm T~String b, or declare it in a cell again\nsubmitting this session: 2 cells",
		},
		{name: "with a name", call: cell.Magic{Name: "submit", Args: "--name mine"}, cells: []string{"%%\n1"}, args: "--json --of notebook.ipynb --name mine .session-*.ipynb"},
		{
			name: "one cell", call: cell.Magic{Name: "%submit", Args: "--nodes 1", Body: "x++"}, cells: []string{"var x int", "%submit"},
			args: "--json --name notebook --of notebook.ipynb --cell [9] --session-kept /tmp/kept --nodes 1 .session-*.ipynb", text: "with the declarations of 1 other cell",
		},
		{name: "nothing to submit", call: cell.Magic{Name: "submit"}, cells: []string{"%submit"}, err: "no cell of this session has run"},
		{name: "no file", call: cell.Magic{Name: "submit", Args: "--saved"}, err: "doesn't say which file"},
		{name: "the script only", call: cell.Magic{Name: "submit", Args: "--dry-run"}, cells: []string{"x"}, text: "#!/bin/bash\nsrun train\n"},
		{name: "open quote", call: cell.Magic{Name: "submit", Args: `"`}, cells: []string{"x"}, err: "EOF"},
		{name: "refused", call: cell.Magic{Name: "submit", Args: "refuse"}, cells: []string{"x"}, err: "submit: refused"},
		{name: "jobs", call: cell.Magic{Name: "jobs"}, args: "status", text: "JOB  STATE\n"},
		{name: "logs", call: cell.Magic{Name: "logs", Args: "--rank 3 8"}, args: "logs --rank 3 8", text: "the log\n"},
		{name: "logs of no job", call: cell.Magic{Name: "logs"}, err: "no job: nothing was submitted in this session"},
		{name: "wait for no job", call: cell.Magic{Name: "wait"}, err: "no job"},
		{name: "wait for another job", call: cell.Magic{Name: "wait", Args: "404"}, err: "no run is called 404"},
		{name: "wait without a scheduler", call: cell.Magic{Name: "wait", Args: "noslurm"}, err: "%wait: submit: squeue not found"},
		{name: "wait for a scheduler that doesn't answer at first", call: cell.Magic{Name: "wait", Args: "88"}, args: "status --json 88"},
		{name: "wait for two jobs", call: cell.Magic{Name: "wait", Args: "7 8"}, err: "%wait 7 8: give at most one run"},
		{name: "logs of another job", call: cell.Magic{Name: "logs", Args: "404"}, err: "no run is called 404"},
		{name: "logs of two jobs", call: cell.Magic{Name: "logs", Args: "7 8"}, err: "%logs 7 8: give at most one run"},
		{name: "logs with an open quote", call: cell.Magic{Name: "logs", Args: "'"}, err: "%logs '"},
		{name: "jobs with an open quote", call: cell.Magic{Name: "jobs", Args: "'"}, err: "%jobs '"},
		{name: "cancel", call: cell.Magic{Name: "cancel", Args: "8"}, args: "cancel 8", text: "job 7 is cancelled"},
		{name: "cancel no job", call: cell.Magic{Name: "cancel"}, err: "%cancel: no job"},
		{name: "cancel another job", call: cell.Magic{Name: "cancel", Args: "404"}, err: "no run is called 404"},
		{name: "result", call: cell.Magic{Name: "result", Args: "8"}, args: "status --json 8"},
		{name: "result of no job", call: cell.Magic{Name: "result"}, err: "no job"},
		{name: "result of another job", call: cell.Magic{Name: "result", Args: "404 as run"}, err: "no run is called 404"},
		{name: "result as no name", call: cell.Magic{Name: "result", Args: "8 as 3x"}, err: "3x can't be the name of a variable"},
		{name: "result as a keyword", call: cell.Magic{Name: "result", Args: "8 as func"}, err: "func can't be the name of a variable"},
		{name: "result as nothing", call: cell.Magic{Name: "result", Args: "as"}, err: "want %result [RUN] [as NAME]"},
		{name: "results", call: cell.Magic{Name: "result", Args: "7 8"}, err: "want %result [RUN] [as NAME]"},
		{name: "no submit command", call: cell.Magic{Name: "jobs"}, program: "/nowhere/submit", err: "/nowhere/submit"},
		{name: "state without a submit command", call: cell.Magic{Name: "wait", Args: "7"}, program: "/nowhere/submit", err: "%wait: fork/exec /nowhere/submit"},
		{name: "unknown", call: cell.Magic{Name: "what"}, err: "%what is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, dir := newMagics(t, "completed")
			if tt.program != "" {
				m.opts.Program = tt.program
			}
			s := &small{cells: tt.cells, earlier: tt.earlier}
			err := m.Run(t.Context(), s, tt.call)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			text, _ := os.ReadFile(filepath.Join(dir, "args"))
			args, _, _ := strings.Cut(string(text), "\n")
			args = strings.ReplaceAll(args, dir+"/", "")
			if ok, err := filepath.Match(strings.ReplaceAll(tt.args, "[", "\\["), args); tt.args != "" && (!ok || err != nil) {
				t.Errorf("submit %s, want %s", args, tt.args)
			}
			s.locked(func() {
				if !strings.Contains(s.text.String(), tt.text) {
					t.Errorf("put out %q, want %q", s.text.String(), tt.text)
				}
			})
		})
	}
}

func TestWait(t *testing.T) {
	tests := []struct{ name, end, err, last string }{
		{name: "succeeds", end: "completed", last: "same gonbatch-job-7 job 7: completed"},
		{name: "fails", end: "failed", err: "job 7: rank 1 said no", last: "same gonbatch-job-7 job 7: failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, dir := newMagics(t, tt.end)
			m.remember(Job{ID: "7", Dir: filepath.Join(dir, "run")})
			s := &small{}
			err := m.Run(t.Context(), s, cell.Magic{Name: "wait"})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if len(s.cards) < 2 || !strings.HasPrefix(s.cards[0], "new gonbatch-job-7 job 7: running") || !strings.HasPrefix(s.cards[len(s.cards)-1], tt.last) {
				t.Errorf("cards %q, want the last to be %q", s.cards, tt.last)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		m, _ := newMagics(t, "running")
		m.remember(Job{ID: "7"})
		s := &small{interrupt: true}
		if err := m.Run(t.Context(), s, cell.Magic{Name: "wait"}); err != nil || !strings.Contains(s.text.String(), "job 7 goes on") {
			t.Errorf("%v, %q", err, s.text.String())
		}
	})
}

func TestNotebookCells(t *testing.T) {
	got := notebookCells(cellsWith([]string{"var x int", "%submit --nodes 2", "%time\n%%\nx++", "%%submit\nx--", "%timeit x", "%env A B\n!ls", "%%bash\n%wait"}))
	want := []string{"var x int", "\n%%\nx++", "%env A B\n!ls", "%%bash\n%wait"}
	if !slices.Equal(sourcesOf(got), want) {
		t.Errorf("%q, want %q", sourcesOf(got), want)
	}
	text, err := notebookText("u.ipynb", got)
	var notebook struct {
		Cells []struct{ Source string }
	}
	if err != nil || json.Unmarshal(text, &notebook) != nil || len(notebook.Cells) != len(want) || notebook.Cells[0].Source != "var x int" {
		t.Errorf("%v: %s", err, text)
	}
}

// cellsWith returns cells with these sources.
func cellsWith(sources []string) []Cell {
	var cells []Cell
	for i, source := range sources {
		cells = append(cells, Cell{Source: source, First: i + 1, Last: i + 1})
	}
	return cells
}

func sourcesOf(cells []Cell) []string {
	var sources []string
	for _, c := range cells {
		sources = append(sources, c.Source)
	}
	return sources
}

// TestTagged: cells get the tags of the saved notebook's cells, found by their ids, or their text.
func TestTagged(t *testing.T) {
	const saved = `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"markdown","id":"m","source":"x","metadata":{"tags":["no"]}},
		{"cell_type":"code","id":"a","source":["var x\n","int\n"],"metadata":{"tags":["notebook-only"]}},
		{"cell_type":"code","id":"b","source":"%%\nx++","metadata":{"tags":["train"]}},
		{"cell_type":"code","source":"other","metadata":{}}]}`
	tests := []struct {
		name, saved string
		cell        Cell
		want        string
	}{
		{name: "by id", saved: saved, cell: Cell{ID: "b", Source: "%%\nx--"}, want: `{"tags":["train"]}`},
		{name: "by text", saved: saved, cell: Cell{Source: "var x\nint"}, want: `{"tags":["notebook-only"]}`},
		{name: "the id counts more", saved: saved, cell: Cell{ID: "b", Source: "var x\nint"}, want: `{"tags":["train"]}`},
		{name: "a new cell", saved: saved, cell: Cell{ID: "c", Source: "y"}},
		{name: "the text of markdown", saved: saved, cell: Cell{Source: "x"}},
		{name: "no notebook", saved: "oops", cell: Cell{ID: "b"}},
		{name: "no file", cell: Cell{ID: "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, dir := newMagics(t, "completed")
			file := filepath.Join(dir, "mine.ipynb")
			m.opts.Environ = append(m.opts.Environ, "JPY_SESSION_NAME="+file)
			if tt.saved != "" {
				if err := os.WriteFile(file, []byte(tt.saved), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got := m.tagged([]Cell{tt.cell})
			if len(got) != 1 || got[0].Source != tt.cell.Source || string(got[0].metadata) != tt.want {
				t.Errorf("metadata %s, want %s", got[0].metadata, tt.want)
			}
			text, err := notebookText("u.ipynb", got)
			if err != nil || tt.want != "" && !strings.Contains(strings.Join(strings.Fields(string(text)), ""), `"metadata":`+tt.want) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

func TestWithoutResults(t *testing.T) {
	tests := []struct {
		name        string
		session     []string
		cells, left []string
	}{
		{name: "none", session: []string{"var run int", "%result 7\nrun++"}, cells: []string{"var run int", "%result 7\nrun++"}},
		{
			name: "used later", session: []string{"var run int", "%result as run", "%%\nfmt.Println(run.Last(\"x\"))", "%%\nx.run()"},
			cells: []string{"var run int", "%result as run", "%%\nx.run()"}, left: []string{"[3] (it uses run)"},
		},
		{name: "used at once", session: []string{"%result 7 as r\nr.Metrics()"}, left: []string{"[1] (it uses r)"}},
		{name: "in a text", session: []string{"%result as r", "%%\nprintln(\"r\") // r\n!r"}, cells: []string{"%result as r", "%%\nprintln(\"r\") // r\n!r"}},
		{name: "no Go", session: []string{"%result as r", "`x"}, cells: []string{"%result as r", "`x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kept, left := withoutResults(cellsWith(tt.session))
			cells := sourcesOf(kept)
			if !slices.Equal(cells, tt.cells) || !slices.Equal(left, tt.left) {
				t.Errorf("%q without %q, want %q without %q", cells, left, tt.cells, tt.left)
			}
		})
	}
}

func TestAsMain(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{name: "statements", body: "x++", want: "%%\nx++"},
		{name: "has a main", body: "var y int\n%% -n 1\nx++", want: "\nvar y int\n%% -n 1\nx++"},
		{name: "func main", body: "func main() {}", want: "\nfunc main() {}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := asMain(tt.body); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestHandlers: the table and the handlers have the same magics.
func TestHandlers(t *testing.T) {
	for _, m := range gocell.Magics {
		if _, ok := handlers[m.Name]; ok != (m.Runner == gocell.Submit) {
			t.Errorf("%s is run by %s, and has a handler here: %v", m.Name, m.Runner, ok)
		}
	}
	for name := range handlers {
		if gocell.Lookup(name) == nil {
			t.Errorf("%s is not in the table", name)
		}
	}
}

func TestDeclaring(t *testing.T) {
	m, dir := newMagics(t, "completed")
	m.opts.Environ = append(m.opts.Environ, "JPY_SESSION_NAME="+filepath.Join(dir, "mine.ipynb"))
	if got := m.Declaring("half"); got != 0 {
		t.Errorf("cell %d of no file", got)
	}
	const saved = `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[
		{"cell_type":"markdown","source":"func half() {}","metadata":{}},
		{"cell_type":"code","source":"%%\nhalf := 1","metadata":{},"outputs":[],"execution_count":null},
		{"cell_type":"code","source":"func half(n int) int { return n / 2 }","metadata":{},"outputs":[],"execution_count":null}]}`
	if err := os.WriteFile(filepath.Join(dir, "mine.ipynb"), []byte(saved), 0o644); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"half": 3, "third": 0} {
		if got := m.Declaring(key); got != want {
			t.Errorf("%s: cell %d, want %d", key, got, want)
		}
	}
}
