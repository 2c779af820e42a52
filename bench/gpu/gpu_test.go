package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/internal/forecast"
	"gonbatch/submit/report"
)

// gpuCheck is the script, on a machine whose /dev has this many GPUs.
func gpuCheck(t *testing.T, gpus int, args ...string) (string, error) {
	t.Helper()
	script, err := filepath.Abs("../../scripts/gpu-check.sh")
	if err != nil {
		t.Fatal(err)
	}
	launcher := ranktest.Torchrun.OnGPUs(t, gpus)
	cmd := launcher.Command(t.Context(), append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), launcher.Environ()...)
	out, err := bounded.CombinedOutput(cmd)
	return string(out), err
}

// TestWithoutGPU: what is missing is named.
func TestWithoutGPU(t *testing.T) {
	out, err := gpuCheck(t, 0)
	if err == nil || !strings.Contains(out, "- an NVIDIA GPU with its driver: there is no /dev/nvidiactl") {
		t.Errorf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/bash", "../../scripts/gpu-check.sh")
	bin := t.TempDir()
	for _, name := range []string{"dirname", "uname", "ls"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(bin, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = []string{"PATH=" + bin}
	said, err := bounded.CombinedOutput(cmd)
	for _, want := range []string{"- Go: install the version in go.mod", "- a C compiler:"} {
		if err == nil || !bytes.Contains(said, []byte(want)) {
			t.Errorf("%v, want %q\n%s", err, want, said)
		}
	}
}

// TestOnStandIn runs all checks on two GPUs that the test plugin plays.
func TestOnStandIn(t *testing.T) {
	out, err := gpuCheck(t, 2, "-networks=cnn", "-steps=2", "-batch=8", "-python=/nowhere/python")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`2 GPUs: GPU 0, GPU 1, driver unknown`,
		`\| one rank, with the key-value store +\| ok +\| one process, collectives of 6 types`,
		`\| all-reduce, all GPUs +\| ok +\| .*the sum is right`,
		`\| one of 8 ranks, mock NCCL +\| ok +\| a step of 8 ranks without the network: [0-9.e+]+ ms`,
		`\| cnn, 1 GPU +\| ok +\| [0-9.e+]+ ms, [0-9]+ a second`,
		`\| cnn, compile cache +\| ok +\| [0-9]+ programs? compiled in .* s, then loaded in .* s`,
		`\| cnn, all GPUs +\| ok +\| .*% of 2 times one GPU's`,
		`\| cnn, PyTorch +\| skipped +\| no torch that computes on GPUs for /nowhere/python`,
		`\| cnn, JAX +\| skipped +\| no jax that computes on GPUs for /nowhere/python`,
		`\| cnn, forecast +\| skipped +\| the driver does not name the GPU: give -target`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

// TestNoTime: what there is no time for is said, and is no failure.
func TestNoTime(t *testing.T) {
	b := &bench{options: options{networks: "cnn"}, gpus: 1}
	rows := b.all(t.Context())
	for _, r := range rows {
		if r.result != "not run" {
			t.Errorf("%s: %s", r.name, r.result)
		}
	}
	if len(rows) != 9 {
		t.Errorf("%d checks", len(rows))
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
