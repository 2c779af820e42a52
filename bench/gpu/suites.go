package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// suite is a package whose tests compute on whatever device there is.
type suite struct {
	name string
	// skip are tests of launchers, of ranks that fail, and of a CPU's devices and memory.
	skip string
	// quick is the test that is run with -quick.
	quick string
}

var suites = []suite{
	{"distributed", "TestFailure|TestClientTrouble|TestHeldUp|TestNoFailure|TestBadNetwork|TestRankDoesNotCome|TestCheck|TestInitRefuses", "TestEquivalence"},
	{"trainer", "TestAllDevices|TestModelParallelBesideFewerDevices|TestUpdatesInPlace", "TestRegularization"},
}

// tests runs a package's tests on the GPU, as far as they get.
func (b *bench) tests(ctx context.Context, s suite) (string, error) {
	folder := b.kit("tests", s.name)
	program := filepath.Join(folder, s.name+".test")
	cmd := exec.Command(program, "-test.v", "-test.short", "-test.skip=^("+s.skip+")$")
	if b.quick {
		cmd.Args = append(cmd.Args, "-test.run=^"+s.quick+"$")
	}
	cmd.Dir = folder
	cmd.Env = slices.Concat(inherited(), b.plugin.environ(), exact, []string{
		ranktest.CUDA + "=" + b.plugin.dir, rundir.EnvCompileCache + "=" + b.programs(),
	})
	out, err := b.output(ctx, cmd)
	text, unfinished, failures := tally(out)
	if err == nil && !strings.Contains(out, "--- PASS:") {
		err = errors.New("no test has passed")
	}
	if failures == "" && (err == nil || unfinished == "") {
		return text, err
	}
	var whole *failure
	if errors.As(err, &whole) {
		err = fmt.Errorf("%w: all of the output is in %s", whole.err, whole.log)
	}
	return text, errors.Join(fmt.Errorf("failed: %s", cmp.Or(failures, "none")), fmt.Errorf("not finished: %s", cmp.Or(unfinished, "none")), err)
}

// beginOrEnd matches the begin and the end of a test, without those of its parts.
var beginOrEnd = regexp.MustCompile(`(?m)^(=== RUN  |--- PASS:|--- FAIL:|--- SKIP:) ([^\s/]+)(?: .*)?$`)

// tally counts what the tests of a package have printed, and names those that didn't finish and
// those that failed.
func tally(out string) (text, unfinished, failures string) {
	count, running := map[string]int{}, map[string]bool{}
	var names []string
	for _, m := range beginOrEnd.FindAllStringSubmatch(out, -1) {
		result, name := strings.Trim(m[1], "-=: "), m[2]
		if running[name] = result == "RUN"; !running[name] {
			count[result]++
		}
		if result == "FAIL" {
			names = append(names, name)
		}
	}
	maps.DeleteFunc(running, func(_ string, runs bool) bool { return !runs })
	text = fmt.Sprintf("%s passed, %d skipped, %d failed", plural.Of(count["PASS"], "test"), count["SKIP"], count["FAIL"])
	return text, strings.Join(slices.Sorted(maps.Keys(running)), " "), strings.Join(names, " ")
}
