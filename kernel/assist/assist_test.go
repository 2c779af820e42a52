package assist

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/machine"
)

// gopls returns the program that `make setup` installs.
func gopls(t *testing.T) string {
	t.Helper()
	name, err := filepath.Abs("../../.cache/bin/gopls")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if name, err = exec.LookPath("gopls"); err == nil {
		return name
	}
	machine.Lacks(t, "no gopls in .cache/bin or on PATH: run `make setup`")
	return ""
}

// module is a session's module with another module next to it, and an Assistant for it.
type module struct {
	dir, built string
	*Assistant
}

func newModule(t *testing.T) *module {
	t.Helper()
	root := t.TempDir()
	m := &module{dir: filepath.Join(root, "module"), built: filepath.Join(root, "built.go")}
	for name, text := range map[string]string{
		"module/go.mod": "module session\n\ngo 1.26\n\nrequire example.com/near v0.0.0\n\nreplace example.com/near => ../near\n",
		"near/go.mod":   "module example.com/near\n\ngo 1.26\n",
		"near/near.go":  "package near\n\n// Distance is how far it is.\nfunc Distance() float64 { return 1 }\n",
		"built.go":      "package main\n\nimport \"example.com/near\"\n\ntype Network struct{ Layers int }\n\nvar network Network\n\nfunc main() { near.Distance() }\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	m.Assistant = New(Options{
		Program: gopls(t), Dir: func() (string, error) { return m.dir, nil }, Built: m.built,
		Environ: append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=", "GOPROXY=off"), Log: os.Stderr,
	})
	t.Cleanup(m.Close)
	return m
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cursor removes the mark | from code and returns its position, in characters.
func cursor(code string) (string, int) {
	before, after, _ := strings.Cut(code, "|")
	return before + after, len([]rune(before))
}

func TestComplete(t *testing.T) {
	m := newModule(t)
	tests := []struct {
		name, code string
		match      string // the match that completes the code
		kind       string
	}{
		{name: "standard library", code: "%%\nfmt.Printl|", match: "fmt.Println", kind: "function"},
		{name: "in an unfinished function", code: "func f() { strings.TrimSp|", match: "strings.TrimSpace", kind: "function"},
		{name: "a cell that is an expression", code: "strings.ToUp|", match: "strings.ToUpper", kind: "function"},
		{name: "an expression after declarations", code: "var greeting = 1\n\nfmt.Sprint(greet|)", match: "greeting", kind: "variable"},
		{name: "what the session declared", code: "%%\nnetw|", match: "network", kind: "variable"},
		{name: "a field of it", code: "network.La|", match: "network.Layers", kind: "field"},
		{name: "what the session imports", code: "%%\nx := near.Dis|", match: "near.Distance", kind: "function"},
		{name: "what the cell declares again", code: "type Network struct{ Width int }\n%%\nvar n Network\nn.Wi|", match: "n.Width", kind: "field"},
		{name: "after a magic and characters of two halves", code: "%time\n%%\ns := \"𝄞ä\"; strings.Repl|ace(s)", match: "strings.Replace", kind: "function"},
		{name: "characters of two halves before a bare expression", code: "fmt.Sprint(\"𝄞ä\", strings.Repl|", match: "strings.Replace", kind: "function"},
		{name: "nothing before the cursor", code: "%%\nfmt.|", match: "fmt.Println", kind: "function"},
		{name: "bare statements", code: "x := network\nx.La|", match: "x.Layers", kind: "field"},
		{name: "no Go", code: "%%bash\nfmt.Printl|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, at := cursor(tt.code)
			done, err := m.Complete(t.Context(), code, at)
			if err != nil {
				t.Fatal(err)
			}
			if tt.match == "" {
				if len(done.Matches) > 0 {
					t.Errorf("matches %v", done.Matches)
				}
				return
			}
			start := string([]rune(code)[:done.Start])
			if rest := string([]rune(code)[done.End:]); strings.HasPrefix(rest, "ace") {
				t.Errorf("%q is left", rest)
			}
			if !slices.ContainsFunc(done.Matches, func(m Match) bool { return strings.HasSuffix(start+m.Text, tt.match) && m.Type == tt.kind }) {
				t.Errorf("after %q: %v; want %s, a %s", start, done.Matches, tt.match, tt.kind)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	m := newModule(t)
	tests := []struct{ name, code, want string }{
		{name: "within a name", code: "%%\nstrings.Tri|mSpace(s)", want: "func strings.TrimSpace(s string) string"},
		{name: "behind a name", code: "import \"fmt\"\n%%\nfmt.Println|", want: "func fmt.Println(a ...any)"},
		{name: "within a call's arguments", code: "%%\nstrings.Repeat(strings.ToUpper(\"a\"), |)", want: "func strings.Repeat(s string, count int) string"},
		{name: "of a module in a folder", code: "near.Distance|()", want: "Distance is how far it is."},
		{name: "of the session", code: "network|", want: "var network Network"},
		{name: "nothing", code: "%%\n|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, at := cursor(tt.code)
			text, err := m.Inspect(t.Context(), code, at)
			if err != nil || !strings.Contains(text, tt.want) || tt.want == "" && text != "" {
				t.Errorf("%q, %v; want %q", text, err, tt.want)
			}
		})
	}
}

// TestChanges: answers reflect changes on disk.
func TestChanges(t *testing.T) {
	m := newModule(t)
	complete := func() []string {
		done, err := m.Complete(t.Context(), "%%\nnear.D", 9)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, match := range done.Matches {
			texts = append(texts, match.Text)
		}
		return texts
	}
	if got := complete(); !slices.Equal(got, []string{"Distance"}) {
		t.Fatalf("matches %v", got)
	}
	write(t, filepath.Join(m.dir, "../near/direction.go"), "package near\n\nfunc Direction() {}\n")
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got := complete(); slices.Contains(got, "Direction") {
			return
		}
	}
	t.Errorf("matches %v after 30 s", complete())
}

// TestRestart: a killed gopls is started again.
func TestRestart(t *testing.T) {
	m := newModule(t)
	m.Warm(t.Context())
	if err := syscall.Kill(m.server.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-m.server.ended
	if done, err := m.Complete(t.Context(), "%%\nfmt.Printl", 13); err != nil || len(done.Matches) == 0 {
		t.Errorf("%v, %v", done, err)
	}
}

func TestWithoutGopls(t *testing.T) {
	a := New(Options{})
	done, err := a.Complete(context.Background(), "fmt.P", 5)
	text, inspectErr := a.Inspect(context.Background(), "fmt.P", 5)
	if err != nil || inspectErr != nil || len(done.Matches) > 0 || done.Start != 5 || text != "" {
		t.Errorf("%v, %v; %q, %v", done, err, text, inspectErr)
	}
	a.Close()
	a = New(Options{Program: "/nowhere/gopls", Dir: func() (string, error) { return t.TempDir(), nil }})
	if _, err := a.Complete(context.Background(), "fmt.P", 5); err == nil || !strings.Contains(err.Error(), "/nowhere/gopls") {
		t.Errorf("error %v", err)
	}
}
