package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed/pjrt/testplugin"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/internal/forecast"
	"gonbatch/submit/report"
)

// smallKit has no programs but those that are quick to link.
func smallKit(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, of := range map[string]string{"run.sh": ".", "step": "../step"} {
		if out, err := bounded.CombinedOutput(exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), of)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

// wholeKit is that which users make.
func wholeKit(t *testing.T) string {
	t.Helper()
	if out, err := bounded.CombinedOutput(exec.CommandContext(t.Context(), "../../scripts/gpu-kit.sh")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return "../../bin/gpu-kit"
}

// onMachine runs the kit on a machine that has this many GPUs, played by the test plugin, and
// neither Go nor a compiler nor a network.
func onMachine(t *testing.T, gpus int, kit string, args ...string) (string, error) {
	t.Helper()
	launcher := ranktest.Torchrun.OnGPUs(t, gpus)
	bin := t.TempDir()
	for _, name := range []string{"sh", "readlink", "bash", "sleep", "ip"} {
		link(t, bin, name)
	}
	alone := []string{"unshare", "--net", "env", "-i", "PATH=" + bin, "HOME=" + t.TempDir(), "GONBATCH_PLUGIN_DIR=" + testplugin.Build(t), "bash", "-c", `ip link set lo up; exec "$@"`, "bash"}
	out, err := bounded.CombinedOutput(launcher.Command(t.Context(), append(append(alone, filepath.Join(kit, "run.sh")), args...)...))
	return string(out), err
}

// link puts a program into a folder.
func link(t *testing.T, folder, name string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		err = os.Symlink(path, filepath.Join(folder, name))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOnStandIn runs all checks on two GPUs, then those of a machine with one.
func TestOnStandIn(t *testing.T) {
	newKit, only, out := wholeKit, "opens,collectives,sum,mock,cnn", t.TempDir()
	if testing.Short() { // Such a kit has no losses.
		newKit, only = smallKit, "opens,collectives,sum,mock,cnn/step,cnn/cache,cnn/memory,cnn/gpus,cnn/torch,cnn/jax"
	}
	kit := newKit(t)
	said, err := onMachine(t, 2, kit, "-quick", "-only="+only, "-python=/nowhere/python", "-out="+out)
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	wanted := []string{
		`^gpu-check.*, gomlx v.*, \d{4}-\d\d-\d\d .* on \S+`,
		`2 GPUs: GPU 0, GPU 1, driver unknown`,
		`ok +opens .* adds and multiplies`,
		`ok +collectives .* one process, collectives of 6 types`,
		`ok +sum .*the sum is right`,
		`ok +mock .* a step of 8 ranks without the network: [0-9.e+]+ ms`,
		`ok +cnn/step .* [0-9.e+]+ ms, [0-9]+ a second, a batch of 8`,
		`ok +cnn/cache .* [0-9]+ programs? compiled in .* s, then loaded in .* s`,
		`skipped +cnn/memory .* the driver does not name the GPU: give -target`,
		`ok +cnn/gpus .*% of 2 times one GPU's`,
		`skipped +cnn/torch .* no torch that computes on GPUs for -python /nowhere/python`,
		`skipped +cnn/jax .* no jax that computes on GPUs for -python /nowhere/python`,
		`\| cnn/cache +\| ok `,
	}
	if !testing.Short() {
		wanted = append(wanted, `ok +cnn/losses .* float32: from 2\.\d+ to .* apart from the CPU; by default: `)
	}
	wantLines(t, said, wanted...)
	file, err := os.ReadFile(filepath.Join(out, "results.txt"))
	if shown := regexp.MustCompile(`(?m)^\(.* runs\)\n`).ReplaceAllString(string(file), ""); err != nil || shown != said {
		t.Errorf("the file has %q, %v", file, err)
	}
	if testing.Short() {
		return
	}
	said, err = onMachine(t, 1, kit, "-quick", "-only=notebooks,tests", "-python=/nowhere/python", "-out="+out)
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	wantLines(t, said,
		`ok +notebooks/mnist .*test/accuracy 0\.\d+; .* examples a second`,
		`ok +notebooks/mnist/resume .*killed after step-\d+, resumed: the same weights, bit for bit`,
		`ok +notebooks/gpt .*val/loss \d`,
		`ok +notebooks/gpt/resume .*bit for bit`,
		`ok +tests/distributed .*1 test passed, 0 skipped, 0 failed`,
		`ok +tests/trainer .*1 test passed, 0 skipped, 0 failed`,
	)
}

func wantLines(t *testing.T, said string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(line).MatchString(said) {
			t.Errorf("want %q in\n%s", line, said)
		}
	}
}

// TestWithoutGPU: what is missing is named.
func TestWithoutGPU(t *testing.T) {
	said, err := onMachine(t, 0, smallKit(t), "-out="+t.TempDir())
	if err == nil || !strings.Contains(said, "no GPU that this process may open: there is no /dev/nvidia0") {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestScript: what gpu-check.sh needs to make the kit is named.
func TestScript(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"dirname", "uname", "ls"} {
		link(t, bin, name)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/bash", "../../scripts/gpu-check.sh")
	cmd.Env = []string{"PATH=" + bin}
	said, err := bounded.CombinedOutput(cmd)
	for _, want := range []string{"- Go: install the version in go.mod", "- a C compiler:"} {
		if err == nil || !bytes.Contains(said, []byte(want)) {
			t.Errorf("%v, want %q\n%s", err, want, said)
		}
	}
}

// TestBadFlags: a flag's nonsense is refused before anything runs.
func TestBadFlags(t *testing.T) {
	for want, change := range map[string]func(*options){
		`there is no check "cn" (-only help lists them)`: func(o *options) { o.only = "opens,cn" },
		`the target "h10O" is not known`:                 func(o *options) { o.target = "h10O" },
		"-steps 0":                                       func(o *options) { o.steps = 0 },
		"-limit 0s":                                      func(o *options) { o.limit = 0 },
	} {
		o := options{steps: 1, limit: time.Second, total: time.Second, out: filepath.Join(t.TempDir(), "out")}
		change(&o)
		err := run(t.Context(), o, nil, &bytes.Buffer{})
		if _, there := os.Stat(o.out); err == nil || !strings.Contains(err.Error(), want) || there == nil {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestChosen: with the checks that the user names come those that they need.
func TestChosen(t *testing.T) {
	b := &bench{}
	for only, want := range map[string]string{
		"opens": "opens", "sum,mock": "opens sum mock", "gpt/torch": "opens gpt/step gpt/torch", "tests/trainer": "opens tests/trainer", "notebooks/mnist": "opens notebooks/mnist notebooks/mnist/resume", "cnn/cache": "opens cnn/step cnn/cache",
	} {
		all, err := chosen(b.checks(), only)
		var names []string
		for _, c := range all {
			names = append(names, c.name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", only, got, err, want)
		}
	}
}

// quiet are results that nobody reads.
func quiet(t *testing.T) *bench {
	t.Helper()
	b := &bench{options: options{limit: time.Second, total: time.Minute, out: t.TempDir()}, until: time.Now().Add(time.Minute)}
	var err error
	if b.results, err = newResults(&bytes.Buffer{}, b.out); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAll: a failure stops only what needs the check, and so does a check that takes too long.
func TestAll(t *testing.T) {
	b := quiet(t)
	passes := func(context.Context) (string, error) { return "fine", nil }
	hangs := func(ctx context.Context) (string, error) {
		cmd := exec.Command("bash", "-c", `trap "echo where it is; exit 3" ABRT; while :; do sleep 0.05; done`)
		return b.output(ctx, cmd)
	}
	count := b.all(t.Context(), []check{
		{"a", "", passes}, {"b", "a", func(context.Context) (string, error) { return "half", errors.New("broken") }}, {"c", "b", passes}, {"d", "a", passes},
		{"e", "", func(context.Context) (string, error) { return "", skipped("not here") }}, {"f", "e", passes}, {"g", "", hangs}, {"h", "", passes},
	})
	ctx, stop := context.WithCancel(t.Context())
	stopped := b.all(ctx, []check{{"i", "", func(ctx context.Context) (string, error) {
		stop()
		return hangs(ctx)
	}}, {"j", "", passes}})
	b.until = time.Now()
	late := b.all(t.Context(), []check{{"k", "", passes}})
	var got []string
	for _, r := range b.results.rows {
		got = append(got, r.name+" "+r.result)
	}
	if want := "a ok, b FAILED, c skipped, d ok, e skipped, f skipped, g FAILED, h ok, i not run, j not run, k not run"; count[failed] != 2 || stopped[notRun] != 2 || late[notRun] != 1 || strings.Join(got, ", ") != want {
		t.Errorf("%v %v %v, %s\nwant %s", count, stopped, late, strings.Join(got, ", "), want)
	}
	if hung := b.results.rows[6].figures; !strings.HasPrefix(hung, "where it is") || !strings.Contains(hung, "still ran after 1s") {
		t.Errorf("it says %q", hung)
	}
}

// TestOut: the results of something else stay, and two checks don't share a folder.
func TestOut(t *testing.T) {
	theirs := t.TempDir()
	if err := os.WriteFile(filepath.Join(theirs, "01-experiment.log"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := newResults(&bytes.Buffer{}, theirs); err == nil || !strings.Contains(err.Error(), "it has files of something else") {
		t.Errorf("a folder of logs: %v", err)
	}
	b := quiet(t)
	b.checking = opens
	b.results.say("%s\n", version())
	if _, err := b.output(t.Context(), exec.Command("true")); err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(b.out, "01-notes.txt")
	if err := os.WriteFile(notes, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := newResults(&bytes.Buffer{}, b.out); err == nil || !strings.Contains(err.Error(), "another check writes there") {
		t.Errorf("two checks: %v", err)
	}
	if err := b.results.file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := newResults(&bytes.Buffer{}, b.out); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(b.out, "01-*")); err != nil || len(left) != 1 || left[0] != notes {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestFullDisk: a program's output that can't be kept ends no check.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close() //nolint:errcheck // nothing was written
	log := &lenient{to: full}
	if n, err := log.Write([]byte("abc")); n != 3 || err != nil || log.err == nil {
		t.Errorf("%d, %v, kept %v", n, err, log.err)
	}
}

// TestWithoutWork: what has not been done is no success.
func TestWithoutWork(t *testing.T) {
	b := quiet(t)
	kit := t.TempDir()
	b.self, b.temporary, b.quick = filepath.Join(kit, "gpu-check"), t.TempDir(), true
	for _, program := range []string{"notebooks/gpt", "tests/trainer/trainer.test"} {
		path := filepath.Join(kit, program)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for want, check := range map[string]func() error{
		"it has logged no val/loss":                   func() error { _, err := b.notebook(t.Context(), notebooks[1]); return err },
		"no test has passed":                          func() error { _, err := b.tests(t.Context(), suites[1]); return err },
		"its steps took no time":                      func() error { _, err := parse(`{"ms_per_step": 0}`, nil); return err },
		"the program ended before it could be killed": func() error { _, err := b.resume(t.Context(), notebooks[1]); return err },
	} {
		if err := check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestWhy: of a crash, the first lines count, since registers come last.
func TestWhy(t *testing.T) {
	registers := strings.Repeat("\nrax 0x0", 100)
	for text, want := range map[string]string{
		strings.Repeat("line\n", 100) + "last\n":                                     "line\nlast",
		"a\nb\nSIGABRT: abort\nPC=1\n\ngoroutine 1 [running]:\nmain.f()" + registers: "a\nb\nSIGABRT: abort\nPC=1\n\ngoroutine 1 [running]:\nmain.f()\nrax 0x0",
		"panic: broken\n\ngoroutine 1":                                               "panic: broken",
	} {
		if got := why(text); !strings.Contains(got, want) || strings.Count(got, "\n") > 40 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTally: a suite that is cut off has tests that didn't finish.
func TestTally(t *testing.T) {
	const out = "=== RUN   TestA\n=== RUN   TestA/part\n    --- FAIL: TestA/part (0.1s)\n--- FAIL: TestA (0.10s)\n=== RUN   TestB\n--- PASS: TestB (0.00s)\n" +
		"=== RUN   TestC\n    c_test.go:1: why\n--- SKIP: TestC (0.00s)\n=== RUN   TestD\n=== PAUSE TestD\n=== RUN   TestE\nSIGABRT: abort\n"
	text, unfinished, failures := tally(out)
	if text != "1 test passed, 1 skipped, 1 failed" || unfinished != "TestD TestE" || failures != "TestA" {
		t.Errorf("%s; unfinished %s, failed %s", text, unfinished, failures)
	}
}

// TestWheel: the plugin of a Python is linked so that it finds NVIDIA's libraries as it does in its
// own folder.
func TestWheel(t *testing.T) {
	site, shadow := t.TempDir(), t.TempDir()
	for _, path := range []string{"jax_plugins/xla_cuda13/xla_cuda_plugin.so", "jax_plugins/xla_cuda13/__init__.py", "nvidia/cu13/lib/libcublas.so.13", "nvidia/cu13/bin/ptxas", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc"} {
		if err := os.MkdirAll(filepath.Join(site, filepath.Dir(path)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(site, path), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PYTHONPATH", site)
	t.Setenv("GONBATCH_PLUGIN_DIR", "")
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XLA_FLAGS", "--xla_a=1")
	c, err := findCUDA(t.Context(), "python3", shadow)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pjrt_c_api_cuda_plugin.so", "../../nvidia/cu13/lib/libcublas.so.13"} {
		if _, err := os.Stat(c.dir + "/" + path); err != nil {
			t.Error(err)
		}
	}
	if want := "XLA_FLAGS=--xla_a=1 --xla_gpu_cuda_data_dir=" + site + "/nvidia/cu13"; c.environ()[1] != want {
		t.Errorf("got %q, want %q", c.environ(), want)
	}
	t.Setenv("PYTHONPATH", "")
	if _, err := findCUDA(t.Context(), "python3", t.TempDir()); err == nil || !strings.Contains(err.Error(), "jax-cuda13-pjrt") || !strings.Contains(err.Error(), "-install") {
		t.Errorf("no plugin: %v", err)
	}
}

func TestTarget(t *testing.T) {
	for names, want := range map[string]string{
		"GPU 0 (NVIDIA H100 80GB HBM3), GPU 1 (NVIDIA H100 80GB HBM3)": "h100", "GPU 0 (NVIDIA A100-SXM4-40GB)": "a100-40", "GPU 0 (Tesla T4)": "t4",
	} {
		if g, err := target("", names); err != nil || g.Name != want {
			t.Errorf("%s: got %q, %v", names, g.Name, err)
		}
	}
	if g, err := target("b200", "GPU 0 (Tesla T4)"); err != nil || g.Name != "b200" {
		t.Errorf("the user's choice: got %q, %v", g.Name, err)
	}
	if _, err := target("", "GPU 0 (GeForce GTX 1080)"); err == nil {
		t.Error("figures of an unknown GPU")
	}
}

// TestJudge: a forecast that is off, or a step faster than it can be, is a failure.
func TestJudge(t *testing.T) {
	said := report.Forecast{Capacity: 1000 << 20, Usable: 750 << 20, Floor: forecast.Floor{Step: 2e-3}, Answer: forecast.Answer{Memory: forecast.Memory{Total: 100 << 20}}}
	good := figures{MilliSeconds: 3, Peak: 105 << 20, Limit: 750 << 20}
	text, err := judge(said, good)
	if err != nil || text != "100.0 MiB said, 105.0 MiB taken (+5 %); XLA has 75 % of the GPU, 75 % said; at least 2 ms, took 3 ms" {
		t.Errorf("got %q, %v", text, err)
	}
	for name, change := range map[string]func(*figures){
		"more memory": func(f *figures) { f.Peak = 120 << 20 }, "less memory": func(f *figures) { f.Peak = 80 << 20 }, "too fast": func(f *figures) { f.MilliSeconds = 1 },
	} {
		f := good
		change(&f)
		if text, err := judge(said, f); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}
