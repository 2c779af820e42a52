package modules

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/tests/goproxy"
)

const useLib = "import \"example.com/lib\"\n%%\nprintln(lib.V)"

// TestVersions: a notebook gets the right version of a module, with the right explanation.
func TestVersions(t *testing.T) {
	b := newBed(t)
	b.Add("example.com/lib", "v1.0.1-0.20260102030405-0123456789ab", "", "lib.go", "package lib\n\nconst V = 2\n")
	b.Commit("example.com/lib", "0123456789ab", "v1.0.1-0.20260102030405-0123456789ab")
	goproxy.WriteFiles(t, b.home, "mine/go.mod", "module example.com/mine\n\ngo 1.26\n", "mine/mine.go", "package mine\n\nconst M = 1\n")
	t.Setenv("HOME", b.home)
	const useMine = "import \"example.com/mine\"\n%%\nprintln(mine.M)"
	tests := []struct {
		name                 string
		cells                []string
		mod, taken, warnings string
	}{
		{"the newest", []string{useLib}, "example.com/lib v1.1.0", "example.com/lib v1.1.0 (the newest)", ""},
		{"go get", []string{"!*go get example.com/lib@v1.0.0", useLib}, "example.com/lib v1.0.0", "example.com/lib v1.0.0 (cell 1, line 1)", ""},
		{"a package", []string{"!*go get example.com/lib/sub@v1.0.0", useLib}, "example.com/lib v1.0.0", "(cell 1, line 1)", ""},
		{"no version", []string{"!*go get example.com/lib", useLib}, "example.com/lib v1.1.0", "(cell 1, line 1)", ""},
		{"a commit", []string{"!*go get example.com/lib@0123456789ab", useLib}, "v1.0.1-0.20260102030405-0123456789ab", "(cell 1, line 1)", ""},
		{"a nested module", []string{"!*go get example.com/pin/nested@v0.1.0", "import \"example.com/pin/nested\"\n%%\nprintln(nested.V, pin.V)"},
			"example.com/pin v1.2.0", "example.com/pin/nested v0.1.0 (cell 1, line 1)", ""},
		{"tidy", []string{useLib, "!*go mod tidy", "%%\nprintln(lib.V)"}, "example.com/lib v1.1.0", "(the newest)", ""},
		{"replace by a folder", []string{"!*go mod edit -replace example.com/mine=${HOME}/mine", useMine}, "example.com/mine => " + b.home + "/mine", "", ""},
		{"replace by a module", []string{"!*go mod edit -replace=example.com/lib=example.com/lib@v1.0.0", useLib}, "=> example.com/lib v1.0.0", "", ""},
		{"a variable of %env", []string{"%env WHERE " + b.home, "!*go mod edit -replace example.com/mine=${WHERE}/mine", useMine}, "=> " + b.home + "/mine", "", ""},
		{"the notebook's folder", []string{"!*go mod edit -replace example.com/mine=$GONB_DIR/mine", useMine}, "=> " + b.home + "/mine", "", ""},
		{"a workspace", []string{"!*rm -f go.work && go work init && go work use . \"${HOME}/mine\"", useMine}, "example.com/mine => " + b.home + "/mine", "", ""},
		{"output of a builtin", []string{"!*go mod edit -replace example.com/mine=$(cd $HOME/mine; pwd)", useMine}, "=> " + b.home + "/mine", "", ""},
		{"no workspace any more", []string{"!*go work init && go work use . \"${HOME}/mine\"", "!*rm go.work", useLib}, "example.com/lib v1.1.0", "", ""},
		{"goimports", []string{"!*go get example.com/lib@v1.0.0", "%%\nprintln(lib.V)"}, "example.com/lib v1.0.0", "example.com/lib v1.0.0 (cell 1, line 1)", ""},
		{"a dot import too", []string{"!*go get example.com/lib@v1.0.0", "import . \"example.com/lib\"\n%%\nprintln(V, lib.V)"}, "example.com/lib v1.0.0", "", ""},
		{"not the standard library's", []string{"!*go get example.com/strings@v1.0.0", "%%\nfmt.Println(strings.Join2(), strings.Also)"}, "example.com/strings v1.0.0", "", ""},
		{"a name that the path does not tell", []string{"import \"example.com/odd-name\"\n%%\nprintln(peculiar.P)"}, "example.com/odd-name v0.3.0", "(the newest)", ""},
		{"an import that nothing uses", []string{"import \"example.com/not/there\"\n%%\nprintln(1)"}, "example.com/pin v1.2.0", "", ""},
		{"older than gonbatch's own", []string{"!*go get example.com/pin@v1.0.0", "import \"example.com/pin\"\n%%\nprintln(pin.V)"}, "example.com/pin v1.0.0", "example.com/pin v1.0.0 (cell 1, line 1)",
			"lowers example.com/pin from v1.2.0 to v1.0.0: gonbatch was tested with the newer version"},
		{"older than possible", []string{"!*go mod edit -require=example.com/pin@v1.0.0", "import \"gonbatch/trainer\"\n%%\nprintln(trainer.V)"}, "example.com/pin v1.2.0", "",
			"asks for example.com/pin from v1.2.0 to v1.0.0"},
		{"a command that may fail", []string{"%allow_fail\n!*go get example.com/nothing@v1.0.0", useLib}, "example.com/lib v1.1.0", "", "!*go get example.com/nothing@v1.0.0 fails"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_ = os.Remove(b.opt.Lock)
			result, mod, err := b.resolve(tt.cells...)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(mod, tt.mod) {
				t.Errorf("go.mod lacks %q:\n%s", tt.mod, mod)
			}
			if taken := texts(result.Taken); !strings.Contains(taken, tt.taken) {
				t.Errorf("took %q, want %q", taken, tt.taken)
			}
			if warnings := texts(result.Warnings); !strings.Contains(warnings, tt.warnings) || tt.warnings == "" && warnings != "" {
				t.Errorf("warnings %q, want %q", warnings, tt.warnings)
			}
			compiles(t, result)
			again, _, err := b.resolve(tt.cells...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(describe(result), describe(again)); diff != "" {
				t.Errorf("the second time is another (-first +second):\n%s", diff)
			}
		})
	}
}

// describe returns the files of a result.
func describe(result *Result) map[string]string {
	files := map[string]string{}
	for name, text := range result.Module.Files {
		files[name] = string(text)
	}
	return files
}

// compiles builds the programs as submit does, to check that nothing is missing.
func compiles(t *testing.T, result *Result) {
	t.Helper()
	dir := t.TempDir()
	if err := result.Module.Write(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-mod=readonly", "-export", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Errorf("go list: %v\n%s\n%s", err, out, result.Module.Files["go.mod"])
	}
}

// TestMistakes: an error names the cell, the line and the fix.
func TestMistakes(t *testing.T) {
	b := newBed(t)
	b.opt.Lock = ""
	tests := []struct {
		name  string
		cells []string
		want  []string
	}{
		{"no module", []string{"// Read.\nimport \"example.com/not/there\"\n%%\nprintln(there.X)"},
			[]string{`n.ipynb, cell 1, line 2: "example.com/not/there":`, "check the import path, or name a version"}},
		{"no version", []string{"!*go get example.com/lib@v9.0.0", useLib}, []string{"cell 1, line 1: !*go get example.com/lib@v9.0.0 fails", "correct the line"}},
		{"no folder", []string{"\n!*go mod edit -replace example.com/mine=/not/there", useLib}, []string{"cell 1, line 2: there is no module in /not/there, which replaces example.com/mine"}},
		{"a folder that the notebook writes", []string{"%%writefile mine/go.mod\nmodule example.com/mine", "!*go mod edit -replace example.com/mine=${GONB_DIR}/mine", useLib},
			[]string{"cell 2, line 1: there is no module in ", "run the cells that create it in the kernel, since programs are compiled before the job runs a cell"}},
		{"a workspace of nothing", []string{"!*go work init && go work use . ${GONB_DIR}/mine", useLib}, []string{"cell 1, line 1: ", "mine does not exist\ncreate the folder before you submit: put the module's source there", "tag the cell notebook-only"}},
		{"relative", []string{"!*go mod edit -replace example.com/mine=../mine", useLib}, []string{"cell 1, line 1: ../mine is relative", "below ${GONB_DIR}"}},
		{"no variable", []string{"!*go work init && go work use . ${GONB_GIT_ROOT}", useLib}, []string{"cell 1, line 1", "GONB_GIT_ROOT: unbound variable", "export it before you submit", "%env GONB_GIT_ROOT VALUE"}},
		{"older than gonbatch needs", []string{"!*go get example.com/pin@v1.0.0", "import \"gonbatch/trainer\"\n%%\nprintln(trainer.V)"},
			[]string{"cell 1, line 1: !*go get example.com/pin@v1.0.0 lowers example.com/pin from v1.2.0 to v1.0.0, and gonbatch, which the programs import, needs the newer version", "remove the line"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, mod, err := b.resolve(tt.cells...)
			if err == nil {
				t.Fatalf("no error:\n%s", mod)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// TestUnchanged: resolved modules stay unchanged, and need no network. An import that is added to
// the notebook later is resolved, and changes nothing else.
func TestUnchanged(t *testing.T) {
	b := newBed(t)
	_, first, err := b.resolve(useLib)
	if err != nil {
		t.Fatal(err)
	}
	b.Add("example.com/lib", "v1.5.0", "", "lib.go", "package lib\n\nconst V = 5\n")
	b.useProxy("off")
	t.Setenv("PATH", "") // No go command runs.
	result, second, err := b.resolve(useLib)
	if err != nil || second != first {
		t.Fatalf("%v\nunchanged:\n%s\nfirst:\n%s", err, second, first)
	}
	if got := texts(result.Taken); got != "example.com/lib v1.1.0 (n.ipynb.lock)" {
		t.Errorf("took %s", got)
	}
}

func TestChanged(t *testing.T) {
	b := newBed(t)
	if _, _, err := b.resolve(useLib); err != nil {
		t.Fatal(err)
	}
	b.Add("example.com/lib", "v1.5.0", "", "lib.go", "package lib\n\nconst V = 5\n", "sub/sub.go", "package sub\n\nconst S = 1\n")
	changed := []string{"!*go get example.com/lib", "import (\n\"example.com/lib\"\n\"example.com/odd-name\"\n)\n%%\nprintln(lib.V, peculiar.P)"}
	_, mod, err := b.resolve(changed...)
	if err != nil || !strings.Contains(mod, "example.com/lib v1.1.0") || !strings.Contains(mod, "example.com/odd-name v0.3.0") {
		t.Errorf("%v\n%s", err, mod)
	}
	if _, mod, err = b.resolve("!*go get example.com/lib@latest", useLib); err != nil || !strings.Contains(mod, "example.com/lib v1.5.0") {
		t.Errorf("with @latest: %v\n%s", err, mod)
	}
}

// TestSession: the session's versions are used, unless the notebook asks for others.
func TestSession(t *testing.T) {
	b := newBed(t)
	b.opt.Lock = ""
	b.opt.Session = []byte("module session\n\nrequire (\n\tgonbatch v0.0.0-00010101000000-000000000000\n\texample.com/lib v1.0.0\n\texample.com/pin v1.0.0\n)\n")
	result, mod, err := b.resolve(useLib)
	if err != nil || !strings.Contains(mod, "example.com/lib v1.0.0") || strings.Contains(mod, "example.com/pin v1.0.0") {
		t.Fatalf("%v\n%s", err, mod)
	}
	if got := texts(result.Taken); got != "example.com/lib v1.0.0 (this session has it)" {
		t.Errorf("took %s", got)
	}
	if _, mod, err = b.resolve("!*go get example.com/lib@v1.1.0", useLib); err != nil || !strings.Contains(mod, "example.com/lib v1.1.0") {
		t.Errorf("with go get: %v\n%s", err, mod)
	}
}

// TestNoLists: without a registry that lists versions, downloaded versions are used.
func TestNoLists(t *testing.T) {
	for _, kind := range []string{"403", "offline"} {
		t.Run(kind, func(t *testing.T) {
			b := newBed(t)
			b.opt.Lock = ""
			url, refusal := "off", "submit once where the network reaches GOPROXY"
			if kind == "403" {
				url, refusal = b.WithoutLists(), "name one in the notebook: !*go get "
			}
			b.useProxy(url)
			_, _, err := b.resolve(useLib)
			if err == nil || !strings.Contains(err.Error(), "cell 1, line 1: \"example.com/lib\"") || !strings.Contains(err.Error(), refusal) {
				t.Fatalf("got %v, want %s", err, refusal)
			}
			b.useProxy(b.URL())
			if _, _, err := b.resolve("!*go get example.com/lib@v1.0.0", useLib); err != nil {
				t.Fatal(err)
			}
			b.useProxy(url)
			for _, cells := range [][]string{{useLib}, {"!*go get example.com/lib@latest", useLib}, {"%%\nprintln(lib.V)"}} {
				result, mod, err := b.resolve(cells...)
				if err != nil || !strings.Contains(mod, "example.com/lib v1.0.0") {
					t.Fatalf("%q: %v\n%s", cells, err, mod)
				}
				compiles(t, result)
			}
		})
	}
}

// TestLockElsewhere: a notebook that was copied with its lock, but without the modules, downloads
// the same versions.
func TestLockElsewhere(t *testing.T) {
	b := newBed(t)
	_, first, err := b.resolve(useLib)
	if err != nil {
		t.Fatal(err)
	}
	b.Add("example.com/lib", "v1.5.0", "", "lib.go", "package lib\n\nconst V = 5\n")
	b.cache = t.TempDir()
	t.Setenv("GOMODCACHE", b.cache)
	b.opt.ModuleCache = b.cache
	if _, mod, err := b.resolve(useLib); err != nil || mod != first {
		t.Errorf("%v\n%s\nfirst:\n%s", err, mod, first)
	}
}

// TestOwnModulesAreEnough: a notebook that needs only gonbatch's modules gets no lock.
func TestOwnModulesAreEnough(t *testing.T) {
	b := newBed(t)
	if _, _, err := b.resolve("import \"gonbatch/trainer\"\n%%\nfmt.Println(trainer.V)"); err != nil {
		t.Fatal(err)
	}
	if locks, _ := filepath.Glob(filepath.Join(b.home, "*.lock")); len(locks) > 0 {
		t.Errorf("left %q", locks)
	}
}

// TestRealRegistry: this machine's registry provides a module that was never downloaded here.
func TestRealRegistry(t *testing.T) {
	real, err := bounded.Output(exec.CommandContext(t.Context(), "go", "env", "GOPROXY", "GOSUMDB"))
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.Fields(string(real))
	check := exec.CommandContext(t.Context(), "go", "list", "-m", "-versions", "github.com/google/uuid")
	check.Dir = t.TempDir()
	goproxy.WriteFiles(t, check.Dir, "go.mod", "module check\n\ngo 1.26\n")
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "v1.6.0") {
		machine.Lacks(t, fmt.Sprintf("the registry %s lists no versions of github.com/google/uuid: %v\n%s", settings[0], err, out))
	}
	b := newBed(t)
	b.useProxy(b.URL() + "," + settings[0])
	t.Setenv("GOSUMDB", settings[1])
	t.Setenv("GONOSUMDB", "example.com")
	result, _, err := b.resolve("!*go get github.com/pkg/errors@v0.9.0", "import \"github.com/google/uuid\"\n%%\nfmt.Println(uuid.New(), errors.Wrap(nil, \"\"))")
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(result.Taken); !strings.Contains(got, "github.com/google/uuid v1.") {
		t.Errorf("took %q", got)
	}
	compiles(t, result)
}

// TestDamagedLock: a truncated, edited or merged lock is an error that names it; one with Windows
// line endings is valid.
func TestDamagedLock(t *testing.T) {
	b := newBed(t)
	if _, _, err := b.resolve(useLib); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(b.opt.Lock)
	if err != nil {
		t.Fatal(err)
	}
	damaged := []string{
		"", "garbage", strings.Replace(string(good), "lib v1.1.0", "lib v1.0.0", 1), "<<<<<<< HEAD\n" + string(good),
		string(good) + ">>>>>>> theirs\n", strings.Replace(string(good), "h1:", "h1:AAAA", 1),
	}
	for at := 0; at < len(good)-1; at += 7 {
		damaged = append(damaged, string(good[:at]))
	}
	for _, text := range damaged {
		if err := os.WriteFile(b.opt.Lock, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.resolve(useLib); err == nil || !strings.Contains(err.Error(), b.opt.Lock+" is damaged, or was edited: ") {
			t.Errorf("error %v with a lock of %d bytes of %d", err, len(text), len(good))
		}
		if now, _ := os.ReadFile(b.opt.Lock); string(now) != text {
			t.Fatalf("the damaged lock was written over")
		}
	}
	if err := os.WriteFile(b.opt.Lock, []byte(strings.ReplaceAll(string(good), "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	result, _, err := b.resolve(useLib)
	if err != nil || texts(result.Taken) != "example.com/lib v1.1.0 (n.ipynb.lock)" {
		t.Errorf("with lines of Windows: %v, %v", result, err)
	}
}

// TestErrorNamesLock: an error while a lock is in use names it.
func TestErrorNamesLock(t *testing.T) {
	b := newBed(t)
	if _, _, err := b.resolve(useLib); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.resolve(useLib, "import \"example.com/not/there\"\n%%\nprintln(there.V)")
	if err == nil || !strings.Contains(err.Error(), "the versions of "+b.opt.Lock+" are in use; delete that file") {
		t.Errorf("error %v", err)
	}
}

// TestAskedByGonbatch: a module that gonbatch's own modules ask for comes in the version that they
// ask for, which is not called the newest.
func TestAskedByGonbatch(t *testing.T) {
	b := newBed(t)
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		b.Add("example.com/deep", version, "", "deep.go", "package deep\n\nconst V = 1\n")
	}
	b.Add("example.com/pin", "v1.3.0", "\nrequire example.com/deep v0.1.0\n", "pin.go", "package pin\n\nconst V = 130\n", "deeper/d.go", "package deeper\n\nimport _ \"example.com/deep\"\n")
	goproxy.WriteFiles(t, b.source, "go.mod", "module gonbatch\n\ngo 1.26\n\nrequire example.com/pin v1.3.0\n")
	result, _, err := b.resolve("import \"gonbatch/trainer\"\nimport \"example.com/deep\"\n%%\nprintln(deep.V, trainer.V)")
	if err != nil {
		t.Fatal(err)
	}
	sum := string(result.Module.Files["go.sum"])
	goproxy.WriteFiles(t, b.source, "go.sum", sum)
	_ = os.Remove(b.opt.Lock)
	if result, _, err = b.resolve("import \"gonbatch/trainer\"\nimport \"example.com/deep\"\n%%\nprintln(deep.V, trainer.V)"); err != nil {
		t.Fatal(err)
	}
	if got, want := texts(result.Taken), "example.com/deep v0.1.0 (another module needs it)"; got != want {
		t.Errorf("took %q, want %q", got, want)
	}
	if result, _, err = b.resolve("import \"example.com/deep\"\n%%\nprintln(deep.V)"); err != nil || texts(result.Taken) != "example.com/deep v0.1.0 (n.ipynb.lock)" {
		t.Errorf("without gonbatch: %q, %v", texts(result.Taken), err)
	}
}
