package corpus

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/rundir"
)

func TestOutputDifference(t *testing.T) {
	mask := []Pattern{{regexp.MustCompile(`loss \d+\.\d+`)}}
	tests := []struct {
		name       string
		want, have Cell
		differ     string
	}{
		{name: "the same", want: Cell{Stdout: "a\n"}, have: Cell{Stdout: "a"}},
		{name: "times, addresses and folders", want: Cell{Stdout: "took 1.5ms at 0xc000012340 in /tmp/gonb_1234abcd/x"}, have: Cell{Stdout: "took 20s at 0xc000099990 in /tmp/a"}},
		{name: "colours", want: Cell{Stderr: "\x1b[1mbold\x1b[0m"}, have: Cell{Stderr: "\x1b[32mbold\x1b[m"}},
		{name: "what was written over", want: Cell{Stdout: "1%\r2%\r3%\n"}, have: Cell{Stdout: "3%\n"}},
		{name: "a mask", want: Cell{Stdout: "loss 0.123"}, have: Cell{Stdout: "loss 0.2"}},
		{name: "another line", want: Cell{Stdout: "a\nb\nc"}, have: Cell{Stdout: "a\nx\nc"}, differ: `standard output, line 2: GoNB "b", here "x"`},
		{name: "less", want: Cell{Stderr: "a\nb"}, have: Cell{Stderr: "a"}, differ: `standard error, line 2: GoNB "b", here ""`},
		{name: "an image is missing", want: Cell{Rich: "image/png"}, differ: `display, line 1: GoNB "image/png", here ""`},
		{name: "GoNB has lost an image", have: Cell{Rich: "image/png"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := outputDifference(tt.want, tt.have, mask); got != tt.differ {
				t.Errorf("%q, want %q", got, tt.differ)
			}
		})
	}
}

// TestJudge checks that a difference is reported unless an exception allows it, and that an
// exception that allows nothing is reported.
func TestJudge(t *testing.T) {
	gonb := Statuses{1: "ok", 2: "ok", 3: "exit 1", 4: "ok", 5: "error"}.cells()
	got := cells{1: {Status: OK}, 2: {Status: Failed, Error: "why"}, 3: {Status: Failed}, 4: {Status: OK, Stdout: "more"}}
	tests := []struct {
		name       string
		exceptions []Exception
		want       []int
		stale      int
	}{
		{name: "none", want: []int{2, 4}},
		{name: "a failure and an output", exceptions: []Exception{{Cell: 2}, {Cell: 4, Output: true}}},
		{name: "only outputs", exceptions: []Exception{{Cell: 2, Output: true}, {Cell: 4, Output: true}}, want: []int{2}, stale: 1},
		{name: "the other side", exceptions: []Exception{{Cell: 2, Side: Job}}, want: []int{2, 4}},
		{name: "of a cell that is the same", exceptions: []Exception{{Cell: 1}}, want: []int{2, 4}, stale: 1},
		{name: "of another notebook", exceptions: []Exception{{Notebook: "b.ipynb", Cell: 2}}, want: []int{2, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.exceptions {
				if tt.exceptions[i].Notebook == "" {
					tt.exceptions[i].Notebook = "a.ipynb"
				}
			}
			c := &comparing{name: "a.ipynb", gonbCells: gonb, rules: Rules{Exceptions: tt.exceptions}}
			c.judge(differences("kernel", gonb, got, nil, nil), Kernel)
			var differ []int
			for _, d := range c.result.Differences {
				differ = append(differ, d.Cell)
			}
			if !slices.Equal(differ, tt.want) || len(c.result.Stale) != tt.stale {
				t.Errorf("differences in cells %v, want %v; stale %v, want %d", differ, tt.want, c.result.Stale, tt.stale)
			}
		})
	}
}

// TestStatusOf checks that the first unfinished program has failed, and that none after it ran.
func TestStatusOf(t *testing.T) {
	made := []rundir.Cell{{Name: "a", Number: 1}, {Name: "b", Number: 3}, {Name: "b-2", Number: 3}, {Name: "c", Number: 4}}
	for finished, want := range map[string]map[int]Status{
		"a b b-2 c": {1: OK, 3: OK, 4: OK},
		"a b b-2":   {1: OK, 3: OK, 4: Failed},
		"a b":       {1: OK, 3: Failed, 4: NotRun},
		"":          {1: Failed, 3: NotRun, 4: NotRun},
	} {
		got := statusOf(made, func(name string) bool { return slices.Contains(strings.Fields(finished), name) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("finished %q (-want +got):\n%s", finished, diff)
		}
	}
}

func TestStatuses(t *testing.T) {
	want := Statuses{1: "ok", 2: "error", 3: "exit 2", 4: "not run"}
	if diff := cmp.Diff(want, want.cells().statuses()); diff != "" {
		t.Error(diff)
	}
	path := filepath.Join(t.TempDir(), "s.json")
	for _, name := range []string{"a", "b"} {
		if err := WriteStatuses(path, map[string]Statuses{name: want}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadStatuses(path)
	if diff := cmp.Diff(map[string]Statuses{"a": want, "b": want}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := KeepStatuses(path, []string{"b", "c"}); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadStatuses(path); err != nil || len(got) != 1 || len(got["b"]) != len(want) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDocument checks that everything in a notebook is kept, whatever tool wrote it.
func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.ipynb")
	text := `{"cells":[{"cell_type":"markdown","source":"x"},
		{"cell_type":"code","source":["steps=100\n","f()"],"metadata":{"tags":["a"]},"outputs":[],"execution_count":1},
		{"cell_type":"code","source":"g()","outputs":[]}],"metadata":{"colab":{}},"nbformat":4,"nbformat_minor":0}`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := readDocument(path)
	if err != nil {
		t.Fatal(err)
	}
	d.prepend("first()")
	d.replace([]Replacement{{Find: Pattern{regexp.MustCompile(`steps=(\d)\d*`)}, With: "steps=$1"}})
	d.tag(3, "b")
	d.tag(4, "c")
	if err := d.write(path); err != nil {
		t.Fatal(err)
	}
	if d, err = readDocument(path); err != nil {
		t.Fatal(err)
	}
	var got []string
	for number, cell := range d.codeCells() {
		tags := []any{}
		if metadata, ok := cell["metadata"].(map[string]any); ok {
			tags, _ = metadata["tags"].([]any)
		}
		got = append(got, strings.TrimSpace(strings.Join([]string{sourceOf(cell), strings.Repeat("#", len(tags)), string(rune('0' + number))}, " ")))
	}
	want := []string{"first()  1", "steps=1\nf() ## 3", "g() # 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := d["metadata"].(map[string]any)["colab"]; !ok {
		t.Error("the notebook's metadata is lost")
	}
}

func TestReadRules(t *testing.T) {
	for text, want := range map[string]string{
		"replace: [{find: '(', with: x}]":                         "missing closing",
		"limits: 3s":                                              "not found",
		"exceptions: [{notebook: a.ipynb, cell: 3}]":              "has no reason",
		"limit: 3s\nexceptions: [{notebook: a, reason: because}]": "",
	} {
		path := filepath.Join(t.TempDir(), RulesFile)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRules(path); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
