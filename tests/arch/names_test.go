package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
)

// contract is the package that tests every scheduler. Like all tests, it spells out the names that
// programs read.
const contract = "submit/schedulertest"

// home is the package that spells out the names of variables and of files in a run directory.
const home = "internal/rundir"

// otherFiles are files elsewhere with the name of a file in a run directory.
var otherFiles = map[string]bool{
	"bench/notebooks/main.go images": true, // docs/images.
}

var ownVariable = regexp.MustCompile(`GONBATCH_[A-Z]`)

// TestVariables checks that only rundir spells out the names of gonbatch's variables. Other
// packages use its constants, and templates get the names as data.
func TestVariables(t *testing.T) {
	eachFile(t, func(name string) {
		if dir := path.Dir(name); dir == home || dir == contract {
			return
		}
		for _, literal := range literals(t, name) {
			if ownVariable.MatchString(literal.text) {
				t.Errorf("%s:%d spells %.60q: use a constant of %s", name, literal.line, literal.text, home)
			}
		}
	})
}

// mayNumberRanks are the other packages and files with variables of launchers and batch systems,
// and why.
var mayNumberRanks = map[string]string{
	"internal/cluster":     "their home",
	"slurmtmpl":            "the job of one batch system, with its own variables",
	"submit/slurm":         "likewise",
	"distributed/mpi":      "finds out which MPI the ranks belong to",
	"distributed/ranktest": "starts ranks",
	"kernel/ranks.sh.tmpl": "starts ranks",
	"tests/cluster":        "starts a batch system",
	"bench":                "starts other programs",
}

// TestRankVariables checks that only package cluster spells out the variables of launchers and
// batch systems that number ranks and describe jobs.
func TestRankVariables(t *testing.T) {
	var names []string
	whole := regexp.MustCompile(`^[A-Z0-9]+_[A-Z0-9_]*[A-Z0-9]$`)
	for _, file := range []string{"batch.go", "environment.go", "launcher.go", "torchrun.go"} {
		for _, literal := range literals(t, "internal/cluster/"+file) {
			if whole.MatchString(literal.text) {
				names = append(names, literal.text)
			}
		}
	}
	if len(names) < 30 {
		t.Fatalf("found only %q", names)
	}
	variable := regexp.MustCompile(`^RANK=?$|\$\{?RANK\b|\b(` + strings.Join(names, "|") + `)\b`)
	eachFile(t, func(name string) {
		if within(name, slices.Collect(maps.Keys(mayNumberRanks))) != "" {
			return
		}
		for _, literal := range literals(t, name) {
			if variable.MatchString(literal.text) {
				t.Errorf("%s:%d has a launcher's variable in %.60q: use cluster.Detect or cluster.Shell", name, literal.line, literal.text)
			}
		}
	})
}

// TestProcesses checks that only package proc reads about other processes in /proc, and rundir,
// which says why.
func TestProcesses(t *testing.T) {
	process := regexp.MustCompile(`^/proc/?$|/proc/[%[]|boot_id`)
	eachFile(t, func(name string) {
		if filepath.Ext(name) != ".go" || within(name, []string{"internal/proc", home}) != "" {
			return
		}
		for _, literal := range literals(t, name) {
			if process.MatchString(literal.text) {
				t.Errorf("%s:%d reads %.60q: use package proc, or rundir.ThisProcess", name, literal.line, literal.text)
			}
		}
	})
}

// TestRunDirectory checks that only rundir spells out the names of files in a run directory.
func TestRunDirectory(t *testing.T) {
	names := runFiles()
	if len(names) < 20 {
		t.Fatalf("found only %q", names)
	}
	eachFile(t, func(name string) {
		if path.Dir(name) == home {
			return
		}
		for _, literal := range literals(t, name) {
			for _, file := range names {
				if literal.names(file) && !otherFiles[name+" "+file] {
					t.Errorf("%s:%d spells %q of the run directory in %.60q: use a method of rundir.Dir", name, literal.line, file, literal.text)
				}
			}
		}
	})
}

// runFiles returns the names of the files and folders in a run directory, from the methods of
// rundir.Dir. It omits the submit command, whose name is everywhere.
func runFiles() (names []string) {
	dir := reflect.ValueOf(rundir.At("/runs/x"))
	for i := range dir.NumMethod() {
		if m := dir.Method(i).Type(); m.NumIn() != 0 || m.NumOut() != 1 || m.Out(0).Kind() != reflect.String {
			continue
		}
		if name, ok := strings.CutPrefix(dir.Method(i).Call(nil)[0].String(), "/runs/x/"); ok && name != "submit" {
			names = append(names, path.Base(name))
		}
	}
	return append(names, path.Dir(rundir.ImagePath("", "", 1)))
}

// literal is a string in a Go file, or a line of a template.
type literal struct {
	text string
	line int
	// joined marks an element of a path.
	joined bool
}

// names reports whether the literal is a path to the file. A word in a sentence is not, and a plain
// word by itself may mean anything.
func (l literal) names(file string) bool {
	if l.text == file {
		return l.joined || strings.ContainsAny(file, ".-")
	}
	return regexp.MustCompile(`/` + regexp.QuoteMeta(file) + `($|["'/\s)])`).MatchString(l.text)
}

// literals returns the strings of a Go file, except its imports, or the lines of another file,
// except comments.
func literals(t *testing.T, name string) (all []literal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sourceRoot(t), name))
	if err != nil {
		t.Fatal(err)
	}
	if path.Ext(name) != ".go" {
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") {
				all = append(all, literal{text: line, line: i + 1})
			}
		}
		return all
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	joined := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.EqualFold(f.Sel.Name, "join") {
				for _, arg := range n.Args {
					joined[arg] = true
				}
			}
		case *ast.BasicLit:
			if value, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				all = append(all, literal{value, files.Position(n.Pos()).Line, joined[n]})
			}
		}
		return true
	})
	return all
}

// eachFile calls f with the names of all files of code that are no tests.
func eachFile(t *testing.T, f func(name string)) {
	t.Helper()
	eachSource(t, func(name string) {
		if !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata/") {
			f(name)
		}
	})
}

// mayReadFiles are the files of packages that know runs, but read others' files there by os, and
// why.
var mayReadFiles = map[string]string{
	"submit/stage/modules.go":    "a notebook's session",
	"submit/stage/parameters.go": "the user's files of parameters",
}

// TestRunRootIsGuarded checks that files in a run root, which others may have written, are read
// through package rundir.
func TestRunRootIsGuarded(t *testing.T) {
	reads := regexp.MustCompile(`\bos\.(ReadFile|Open)\(`)
	seen := 0
	eachFile(t, func(name string) {
		dir := path.Dir(name)
		if !slices.Contains([]string{"submit", "submit/run", "submit/slurm", "submit/job", "submit/rank", "submit/local", "submit/executed", "submit/report", "submit/result", "submit/stage", "cmd/submit"}, dir) {
			return
		}
		seen++
		text, err := os.ReadFile(filepath.Join(sourceRoot(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if found := reads.Find(text); found != nil && mayReadFiles[name] == "" {
			t.Errorf("%s calls %s...: read what is in a run by rundir.ReadFile or rundir.Open", name, found)
		}
	})
	if seen < 50 {
		t.Errorf("only %d files were checked", seen)
	}
}

// eachSource calls f with the names of all files of code, tests too.
func eachSource(t *testing.T, f func(name string)) {
	t.Helper()
	out, err := bounded.Output(exec.Command("git", "-C", sourceRoot(t), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go", "*.sh", "*.tmpl"))
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(sourceRoot(t), name)); err == nil {
			f(name)
		}
	}
}
