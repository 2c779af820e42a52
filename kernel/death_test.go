package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// stderrPieces are parts of stderr lines that look like places in the program.
var stderrPieces = []string{
	"main.go", "main_test.go", "./", "/x/", ":", ":", ":", ": ", " ", "\t", "0", "1", "8", "12", "-5", "99999999999999999999", "10:00:00", "step", "\r", "é", "\\xff", "\\\\", "\\n",
}

// TestStderr: no line on a program's stderr ends the session.
func TestStderr(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	for range 3000 {
		for range 1 + random.IntN(9) {
			lines.WriteString(stderrPieces[random.IntN(len(stderrPieces))])
		}
		lines.WriteString("\\n")
	}
	const tests = "%test\nfunc TestX(t *testing.T) { log.SetFlags(log.LstdFlags | log.Lshortfile); log.Println(`x`) }"
	ends := runCells(t, []string{
		"%%\nlog.SetFlags(log.LstdFlags | log.Lshortfile)\nlog.Println(`a log line`)",
		"%%\nfmt.Fprint(os.Stderr, \"" + lines.String() + "\", `the end`)",
		"%%\nfmt.Fprintln(os.Stderr, `main.go:9223372036854775807: c`)\nfmt.Fprintln(os.Stderr, `main.go:8:99999999999: c`)",
		tests,
		"%%\nvar n int = `a: b: main.go:9223372036854775807:1: x`",
		"!*grep -c 'var n int' main.go",
		"%%\nfmt.Println(6 * 7)",
		"!*grep -c 'fmt.Println(6' main.go",
	})
	for i, want := range []struct{ status, text string }{
		{"ok", "main.go:"}, {"ok", "the end"}, {"ok", ""}, {"ok", "PASS"}, {"error", "cannot use"}, {"ok", "1\n"}, {"ok", "42\n"}, {"ok", "1\n"},
	} {
		if ends[i][0] != want.status || !strings.Contains(ends[i][3], want.text) {
			t.Errorf("cell %d: %s: %.2000q, want %s with %q", i+1, ends[i][0], ends[i][3], want.status, want.text)
		}
	}
}

// TestDeath: if the kernel dies, the running cell is answered, and the kernel can be restarted.
func TestDeath(t *testing.T) {
	const kill = "!p=$$; while [ $(cat /proc/$p/comm) != gonb ]; do p=$(cut -d' ' -f4 /proc/$p/stat); done; kill -%s $p; tail -f /dev/null"
	ends := runCells(t, []string{
		"var n = 1", fmt.Sprintf(kill, "KILL"), "%%\nfmt.Println(n)", fmt.Sprintf(kill, "ABRT"), "%%\nfmt.Println(6 * 7)",
	})
	for i, want := range [][3]string{
		{"ok", "", ""}, {"error", "KernelDied", "no memory left"}, {"error", "CompileError", "undefined: n"},
		{"error", "KernelDied", "run the cells again"}, {"ok", "", "42\n"},
	} {
		if ends[i][0] != want[0] || ends[i][1] != want[1] || !strings.Contains(ends[i][3], want[2]) {
			t.Errorf("cell %d: %q, want %q", i+1, ends[i], want)
		}
	}
}

// TestRefuse: the cells of a kernel that can't start fail with the reason.
func TestRefuse(t *testing.T) {
	for i, end := range runCells(t, []string{"var n = 1", "%%\nfmt.Println(n)"}, "GONBATCH_SOURCE=/nowhere") {
		if end[0] != "error" || end[1] != "KernelNotStarted" || !strings.Contains(end[2], "/nowhere/") {
			t.Errorf("cell %d: %q", i+1, end)
		}
	}
}

// TestGoNBEndsAtOnce: so do those of one whose GoNB ends as it starts.
func TestGoNBEndsAtOnce(t *testing.T) {
	for i, end := range runCells(t, []string{"var n = 1", "%%\nfmt.Println(n)"}, "GOPATH=relative") {
		if end[0] != "error" || end[1] != "KernelNotStarted" || !strings.Contains(end[2], "gonb: it ended at once: ") || !strings.Contains(end[2], "GOPATH entry is relative") {
			t.Errorf("cell %d: %q", i+1, end)
		}
	}
}
