package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// programs have a main, or help tests: they may read the environment anywhere.
var programs = []string{"cmd", "bench", "tests", "distributed/ranktest", "distributed/pjrt/testplugin", "submit/schedulertest", "internal/machine"}

// readers maps the files of libraries that read the environment, one in each library, to the
// function that does, and why it cannot get the values from main.
var readers = map[string]string{
	"distributed/world.go":              "Init, which a notebook calls without a configuration",
	"trainer/trainer.go":                "New, likewise",
	"data/files/keep.go":                "Keep, for datasets that a notebook opens without a configuration",
	"data/cifar10/cifar10.go":           "Load, likewise",
	"data/cifar100/cifar100.go":         "Load, likewise",
	"data/mnist/mnist.go":               "Load, likewise",
	"data/fashionmnist/fashionmnist.go": "Load, likewise",
	"kernel/display/result.go":          "Result, which the code of a cell calls",
	"submit/result/run.go":              "Current, which the code of a cell calls",
	"kernel/keep/place.go":              "findPlace, for Load and Save, which the code of a cell calls",
	"internal/plugin/plugin.go":         "the default of Options.Getenv",
	"submit/build/toolchain.go":         "the default of Options.Env, as in os/exec",
	"submit/export/export.go":           "the default of Options.ModuleCache, Go's own",
	"submit/local/run.go":               "the default of Runner.Environ, as in os/exec",
}

// TestEnvironment checks that only main packages, and one place in a library, read the environment.
// All other code is given the values.
func TestEnvironment(t *testing.T) {
	unused := map[string]bool{}
	for name := range readers {
		unused[name] = true
	}
	eachFile(t, func(name string) {
		if filepath.Ext(name) != ".go" || within(name, programs) != "" {
			return
		}
		for _, position := range environmentCalls(t, name) {
			delete(unused, name)
			if readers[name] == "" {
				t.Errorf("%s reads the environment: take the value from the caller", position)
			}
		}
	})
	for name := range unused {
		t.Errorf("%s is listed as a reader of the environment, but reads nothing", name)
	}
}

// environmentReaders are the functions that read the environment, also to find a folder, for which
// there is userdir, and viper's.
var environmentReaders = map[string][]string{
	"os": {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserCacheDir", "UserConfigDir", "UserHomeDir"},
	"":   {"AutomaticEnv", "BindEnv", "MustBindEnv"},
}

// environmentCalls returns the positions in a file that read the environment.
func environmentCalls(t *testing.T, name string) (positions []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join(sourceRoot(t), name), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.SelectorExpr); ok {
			pkg, ok := f.X.(*ast.Ident)
			if ok && slices.Contains(environmentReaders[pkg.Name], f.Sel.Name) || slices.Contains(environmentReaders[""], f.Sel.Name) {
				positions = append(positions, strings.TrimPrefix(files.Position(n.Pos()).String(), sourceRoot(t)+"/"))
			}
		}
		return true
	})
	return positions
}

// skippers are the files of tests that skip one, and why not by machine.Lacks.
var skippers = map[string]string{
	"internal/machine/lacks.go":             "Lacks itself",
	"internal/machine/lacks_test.go":        "its test",
	"internal/tier/tier.go":                 "the test is of the second tier",
	"internal/quota/quotatest/quotatest.go": "even for root, the control groups of most containers are read-only",
	"tests/arch/pins_test.go":               "newer versions of modules work: that is news, and lacks nothing",
}

// TestSkips: a test is skipped for what the machine lacks, which is an error with CI=true.
func TestSkips(t *testing.T) {
	skip := regexp.MustCompile(`\bt\.(Skip|Skipf|SkipNow)\(`)
	eachSource(t, func(name string) {
		if skippers[name] != "" {
			return
		}
		text, err := os.ReadFile(filepath.Join(sourceRoot(t), name))
		if err != nil {
			t.Error(err)
		}
		if found := skip.Find(text); found != nil {
			t.Errorf("%s has %s...): use machine.Lacks, which fails with CI=true", name, found)
		}
	})
}
