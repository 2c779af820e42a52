package kernel_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/cells.py
var cellsScript string

// TestCells runs cells on a real kernel, one after another in one session.
func TestCells(t *testing.T) {
	tests := []struct {
		name, code   string
		status       string
		ename, value string
		text         string // is contained in the cell's output
	}{
		{name: "command", code: "!echo a b", status: "ok", text: "a b\n"},
		{name: "failing command", code: "!echo before\n!exit 3", status: "error", ename: "CommandFailed", value: "!exit 3: exit status 3", text: "line 2"},
		{name: "that may fail", code: "%allow_fail\n!exit 3", status: "ok"},
		{name: "bash", code: "%%bash\nfalse", status: "error", ename: "CommandFailed", value: "%%bash: exit status 1"},
		{name: "script with input", code: "%%script cat\nhello", status: "ok", text: "hello\n"},
		{name: "failing script", code: "%%script sh -e\nfalse\necho after", status: "error", ename: "CommandFailed", value: "%%script sh -e: exit status 1"},
		{name: "a command that is not there", code: "%%script no-such-program\n", status: "error", ename: "CommandFailed", value: "exit status 127"},
		{name: "unknown magic", code: "%nothing\n", status: "error", ename: "MagicError", value: "line 1: unknown magic %nothing", text: "Cell ["},
		{name: "marks only", code: "% \n! \n6 * 7", status: "ok", text: "result text/plain: 42"},
		{name: "tabs", code: "%exec\tforty\nfunc forty() { fmt.Println(40) }", status: "ok", text: "40\n"},
		{name: "exec alone", code: "%exec forty", status: "ok", text: "40\n"},
		{name: "panic", code: "%%\npanic(\"boom\")", status: "error", ename: "panic", value: "boom", text: "goroutine 1"},
		{name: "compile error", code: "%%\nx := nothing", status: "error", ename: "CompileError", value: "line 2: undefined: nothing", text: "] line 2"},
		{name: "interrupted shell", code: "!sleep 600; echo after", status: "error", ename: "Interrupted"},
		{name: "interrupted shell that ignores it", code: "!trap '' INT; sleep 600; echo after", status: "error", ename: "Interrupted"},
		{name: "interrupted program that ignores it", code: "%%\nsignal.Ignore(os.Interrupt)\n// no sleep\nselect {\ncase <-time.After(time.Hour):\n}", status: "error", ename: "Interrupted"},
		{name: "interrupted program", code: "%%\nexec.Command(\"sleep\", \"600\").Run()\nselect {}", status: "error", ename: "Interrupted"},
		{name: "value", code: "6 * 7", status: "ok", text: "result text/plain: 42"},
		{name: "value after output", code: "%%\nfmt.Println(\"first\")\nimage.NewGray(image.Rect(0, 0, 2, 1))", status: "ok", text: "first\nresult image/png text/plain: *image.Gray (2,1)"},
		{name: "value of a call", code: "%%\nstrconv.Atoi(\"7\")", status: "ok", text: "result text/plain: 7"},
		{
			name: "plot", code: "import (\n\t\"gonum.org/v1/plot\"\n\t\"gonum.org/v1/plot/plotutil\"\n\t\"gonum.org/v1/plot/plotter\"\n)\n%%\np := plot.New()\n" +
				"if err := plotutil.AddLines(p, plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 0}}); err != nil {\n\tpanic(err)\n}\np",
			status: "ok", text: "result image/svg+xml text/plain: *plot.Plot",
		},
		{name: "call without a value", code: "func f(s string) { fmt.Println(s) }\n%%\nf(\"once\")", status: "ok", text: "once\n"},
		{name: "again", code: "f(\"twice\")", status: "ok", text: "twice\n"},
		{name: "panic in the expression", code: "%%\nvar l []int\n\nl[3]", status: "error", ename: "panic", text: "Line 4"},
		{name: "a declaration that fails", code: "func late() int { return nothing }\n%%\nlate()", status: "error", ename: "CompileError"},
		{name: "its use", code: "%%\nlate()", status: "error", ename: "CompileError", value: "line 2: undefined: late; cell [25] declares it, but failed (line 1: undefined: nothing): correct it and run it again"},
		{name: "mistake in the expression", code: "%%\n\nf(nothing)", status: "error", ename: "CompileError", value: "line 3: undefined: nothing", text: "f(nothing)\n  ^"},
		{name: "lines of Windows", code: "// c\r\nvar crlf = `a\r\nb`\r\n!echo x\r\n%%\r\nfmt.Printf(\"%q\\n\", crlf)\r\n", status: "ok", text: "x\n\"a\\nb\"\n"},
		{name: "script with lines of Windows", code: "%%bash\r\nfor i in 1 2; do\r\necho $i\r\ndone", status: "ok", text: "1\n2\n"},
		{name: "a mistake in them", code: "%%\r\n\r\nx := nothing\r\n", status: "error", ename: "CompileError", value: "line 3: undefined: nothing"},
		{name: "much of characters of several bytes", code: "%%\nvar text = \"a\" + strings.Repeat(\"名\", 100_000)\nfmt.Println(text)", status: "ok", text: "a" + strings.Repeat("名", 100_000) + "\n"},
		{name: "and of a command", code: "!for i in $(seq 1 20000); do echo äöü$i; done", status: "ok", text: "\näöü9999\näöü10000\n"},
		{name: "a helper's log.Fatal", code: "func check(err error) {\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n%%\nfmt.Println(1)\ncheck(os.ErrNotExist)", status: "error", text: "Line 8 ]]"},
		{name: "its helper's line", code: "%%\ncheck(os.ErrExist)", status: "error", text: "Line 3 ]]"},
		{name: "killed program", code: "%%\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)", status: "error", value: "signal: killed"},
		{name: "keep", code: "type model struct{ W []int; secret int }\nvar m model\nvar n = 1\n%keep m, n\n%%\nm.W, n = []int{1, 2}, 5", status: "ok"},
		{name: "kept", code: "%%\nn++\nfmt.Println(m, n)", status: "ok", text: "{[1 2] 0} 6\n"},
		{name: "kept after a change, and a panic", code: "%%\nn *= 2\npanic(\"stop\")", status: "error", ename: "panic", value: "stop"},
		{name: "kept after a panic", code: "n", status: "ok", text: "result text/plain: 12"},
		{name: "kept in a func main", code: "func main() {\n\tn = 3\n}", status: "ok"},
		{name: "list of what is kept", code: "%keep\nn", status: "ok", text: "kept: m (98 bytes, changed at TIME), n (28 bytes, changed at TIME)\nresult text/plain: 3"},
		{name: "what cannot be encoded", code: "%%\nm.secret = 1", status: "error", ename: "KeepError", value: "%keep m: the field m.secret of main.model is not exported"},
		{name: "the earlier value is there", code: "%%\nfmt.Println(m.W, n)", status: "ok", text: "[1 2] 3\n"},
		{name: "what can never be encoded", code: "var hook = func() {}\n%keep hook\n%%\nhook()", status: "error", ename: "KeepError", value: "%keep hook: hook is a func, which exists only in its own process: keep what it is made of; it is not kept from now on"},
		{name: "after it", code: "n", status: "ok", text: "result text/plain: 3"},
		{name: "another package's type", code: "import \"container/list\"\nvar queue = list.New()\n%keep queue\n%%\nqueue.PushBack(1)", status: "error", ename: "KeepError", value: "the type is package container/list's: keep what it is made from"},
		{name: "after that", code: "n", status: "ok", text: "result text/plain: 3"},
		{name: "keep a function and a constant", code: "func größe() int { return 1 }\nconst π = 3\n%keep größe, n, π\n%%\n", status: "error", ename: "KeepError", value: "%keep größe: invalid operation: cannot take address of größe"},
		{name: "after these", code: "%keep\nn", status: "ok", text: "kept: m (98 bytes, changed at TIME), n (28 bytes, changed at TIME)\nresult text/plain: 3"},
		{name: "keep by the name of a package", code: "var keep, größer = 1, 2\n%keep keep, größer\n%%\nkeep, größer = 3, 4", status: "ok"},
		{name: "kept by it", code: "keep * größer", status: "ok", text: "result text/plain: 12"},
		{name: "not any longer", code: "%keep -d keep, größer", status: "ok"},
		{name: "keep what is not there", code: "%keep nowhere", status: "error", ename: "KeepError", value: "%keep nowhere: there is no such package-level variable"},
		{name: "keep what is not there, beside a declaration", code: "%keep nowhere\nvar here = 1", status: "error", ename: "KeepError", value: "%keep nowhere: there is no such package-level variable"},
		{name: "keep in a cell with a mistake", code: "var mistaken = 1\n%keep mistaken\n%%\nx := nothing", status: "error", ename: "CompileError", value: "line 4: undefined: nothing"},
		{name: "does not concern another cell", code: "n", status: "ok", text: "result text/plain: 3"},
		{name: "keep what that cell declares", code: "%keep mistaken", status: "error", ename: "KeepError", value: "%keep mistaken: undefined: mistaken; cell [55] declares it, but failed (line 4: declared and not used: x): correct it and run it again"},
		{name: "keep in a cell that panics", code: "var kept = 1\n%keep kept\n%%\nkept++\npanic(1)", status: "error", ename: "panic"},
		{name: "keeps", code: "kept", status: "ok", text: "result text/plain: 2"},
		{name: "not for long", code: "%keep -d kept", status: "ok"},
		{name: "keep no longer", code: "%keep -d n, m\nn", status: "ok", text: "result text/plain: 1"},
		{name: "time", code: "%time\n%%\nfmt.Println(1)", status: "ok", text: "1\ntime: compose "},
		{name: "timeit", code: "%timeit strconv.Itoa(12345)", status: "ok", text: " per call (mean ± standard deviation of 7 runs of "},
		{name: "timeit of a value", code: "%timeit len(\"abc\")", status: "ok", text: "ns ± "},
		{name: "timeit of nothing", code: "%timeit", status: "error", ename: "MagicError", value: "line 1: %timeit : want a Go expression"},
		{name: "arguments with letters outside ASCII", code: "%env GREETING Zoë\n%% 名\nfmt.Println(flag.Args(), os.Getenv(\"GREETING\"))", status: "ok", text: "[名] Zoë\n"},
		{name: "in a shell command", code: "!echo \"$GREETING é\"", status: "ok", text: "Zoë é\n"},
		{name: "a file to embed", code: "var n = 1\n//go:embed go.sh.tmpl\nvar script string", status: "error", ename: "MagicError", value: "line 2: //go:embed can't take files into a notebook's programs"},
		{name: "a bare go build", code: "!*go vet . && go build && echo built", status: "ok", text: "built\n"},
		{name: "a variable to remove", code: "var gone = 1", status: "ok"},
		{name: "its removal", code: "%rm gone", status: "ok"},
		{name: "a removed variable", code: "%%\nfmt.Println(gone)", status: "error", ename: "CompileError", value: "line 1 has removed it: run the cell that declares it again"},
		{name: "who", code: "%who", status: "ok"},
		{name: "ranks of the next cell", code: "%distributed 3", status: "ok"},
		{name: "not of declarations", code: "var unused int", status: "ok"},
		{name: "three ranks", code: "%%\nfmt.Println(os.Getenv(\"RANK\"), os.Getenv(\"WORLD_SIZE\"))", status: "ok", text: "[rank 2] 2 3\n"},
		{name: "one rank again", code: "%%\nfmt.Println(\"rank\", os.Getenv(\"RANK\"))", status: "ok", text: "rank \n"},
		{name: "a rank that fails", code: "%distributed 2\n%%\nif os.Getenv(\"RANK\") == \"1\" {\n\tos.Exit(5)\n}", status: "error", value: "exit status 5"},
		{name: "too many ranks", code: "%distributed 1000", status: "error", ename: "MagicError", value: "1 to 64"},
		{name: "Go", code: "%%\nfmt.Println(6 * 7)", status: "ok", text: "42\n"},
		{name: "a bare go build", code: "!*go build && ls -t | head -1", status: "ok", text: "gonb_"},
		{name: "Go after it", code: "%%\nfmt.Println(6 * 7)", status: "ok", text: "42\n"},
		{name: "tests", code: "%test\nfunc TestSix(t *testing.T) { fmt.Println(\"6 × 7\") }", status: "ok", text: "6 × 7\n--- PASS: TestSix"},
		{name: "of two ranks", code: "%distributed 2\n%test\nfunc TestRank(t *testing.T) { fmt.Println(os.Getenv(\"RANK\")) }", status: "ok", text: "[rank 1] --- PASS: TestRank"},
		{name: "a test that panics", code: "%test\nfunc TestPanic(t *testing.T) {\n\tpanic(7)\n}", status: "error", text: "Line 3 ]]"},
		{name: "the exit status of a panic", code: "%%\npanic(7)", status: "error", ename: "panic", value: "7"},
		{name: "a test that fails", code: "%test\nfunc TestSeven(t *testing.T) { t.Error(7) }", status: "error", text: "--- FAIL: TestSeven"},
		{name: "tests with coverage", code: "%goflags --cover\n%test\nfunc TestSix(t *testing.T) {}", status: "ok", text: "PASS\ncoverage: "},
		{name: "the same Go", code: "%goflags \"\"\n%%\nfmt.Println(6 * 7)", status: "ok", text: "42\n"},
		{
			name: "a module of the user's", status: "ok",
			code: "!*mkdir near && cd near && go mod init example.com/near && printf 'package near\\n\\nconst N = 7\\n' >near.go\n!*go work init && go work use . ./near\n%goworkfix",
		},
		{name: "in a workspace", code: "import \"example.com/near\"\n%%\nfmt.Println(near.N)", status: "ok", text: "7\n"},
		{name: "that is changed", code: "!*sed -i s/7/8/ near/near.go\n%%\nfmt.Println(near.N)", status: "ok", text: "8\n"},
	}
	var codes []string
	for _, tt := range tests {
		codes = append(codes, tt.code)
	}
	ends := runCells(t, codes)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, ename, value, text := ends[i][0], ends[i][1], ends[i][2], clock.ReplaceAllString(ends[i][3], "TIME")
			if status != tt.status || tt.ename != "" && ename != tt.ename || !strings.Contains(value, tt.value) || !strings.Contains(text, tt.text) || strings.Contains(text, "\uFFFD") {
				t.Errorf("%s, %s: %q, output %q;\nwant %s, %s: %q, output with %q", status, ename, value, text, tt.status, tt.ename, tt.value, tt.text)
			}
		})
	}
}

// TestLastDisplay: what a program displays just before its end is shown, each time.
func TestLastDisplay(t *testing.T) {
	const n = 25
	for i, end := range runCells(t, slices.Repeat([]string{"%%\ngonbui.DisplayHTML(\"<b>last</b>\")\nos.Exit(0)"}, n)) {
		if end[0] != "ok" || !strings.Contains(end[3], "display text/html\n") {
			t.Errorf("run %d of %d: %s, output %q, want a display", i+1, n, end[0], end[3])
		}
	}
}

// runCells runs cells in one session, with additional variables in its environment. It returns the
// status, ename, evalue and text of each.
func runCells(t *testing.T, codes []string, env ...string) [][4]string {
	t.Helper()
	input, err := json.Marshal(codes)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(jupyter.Python(t), "-c", cellsScript)
	cmd.Env = append(os.Environ(), slices.Concat(kernelEnv(t), []string{"TMPDIR=" + t.TempDir()}, env)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var ends [][4]string
	if err := json.Unmarshal(out, &ends); err != nil || len(ends) != len(codes) {
		t.Fatalf("%d results of %d cells: %v\n%s\n%s", len(ends), len(codes), err, out, stderr.String())
	}
	return ends
}

// clock matches a time.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
