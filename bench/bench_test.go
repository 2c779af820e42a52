package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"gonbatch/internal/machine"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, out, err string
		want           measurement
	}{
		{
			name: "the last line counts", out: "some log\n{\"version\":\"1\",\"images_per_second\":2000.5,\"ms_per_step\":32}\n",
			want: measurement{Version: "1", ImagesPerSecond: 2000.5, MillisPerStep: 32},
		},
		{name: "nothing", err: "X: its last line is not a measurement"},
		{name: "no figures", out: "{}", err: "no images_per_second"},
		{name: "a figure of zero", out: `{"images_per_second":0,"ms_per_step":1}`, err: "no images_per_second"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse("X", tt.out)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestStepTable(t *testing.T) {
	report := stepReport{CPU: "A CPU", Load: "0.02", Rounds: 5, Networks: []stepNetwork{{Title: "CNN", Batch: 64, Steps: 100}, {Title: "ResNet-18", Batch: 32, Steps: 5}}}
	row := func(name, version string, on layout, perSecond, millis float64) stepRow {
		m := measurement{Version: version, ImagesPerSecond: perSecond, MillisPerStep: millis, CPUPerStep: millis - 1, FirstStep: 2.5, PeakMB: 512.4}
		r := stepRow{Name: name, Ranks: on.ranks, Cores: on.cores}
		r.fill([]measurement{{Version: version}, m, m})
		return r
	}
	report.Networks[0].Rows = []stepRow{
		row("gonbatch", "", layout{1, 1}, 2188, 29.25), row(torchBest, "2.15", layout{1, 1}, 1652, 38.74), row(torchDefaults, "2.15", layout{1, 1}, 1500, 42.67),
		row("gonbatch", "", layout{2, 1}, 4300, 29.77), row(torchBest, "2.15", layout{2, 1}, 2829, 45.2), row(torchDefaults, "2.15", layout{2, 1}, 3304, 38.74),
		row(jaxGloo, "", layout{2, 1}, 1000, 128), row(oursApart, "", layout{2, 1}, 4376, 29.25),
		row("gonbatch, zero1", "", layout{2, 1}, 4000, 32), row("PyTorch ZeRO", "2.15", layout{2, 1}, 2000, 64),
		row("gonbatch", "", layout{1, 4}, 5000, 12.8), row("PyTorch", "2.15", layout{1, 4}, 4000, 16),
	}
	for i := range report.Networks[0].Rows {
		report.Networks[0].Rows[i].Zero1 = strings.Contains(strings.ToLower(report.Networks[0].Rows[i].Name), "zer")
	}
	report.Networks[0].addFaster()
	report.Networks[1].Rows = []stepRow{row("gonbatch", "", layout{1, 1}, 29.25, 1094)}
	want := `
A CPU, load average before: 0.02.

## CNN

64 inputs for each rank, 100 steps a round.

| ranks | cores each | | inputs/s | ms a step | processor ms | first step s | peak MB | gonbatch is |
|--:|--:|---|--:|--:|--:|--:|--:|--:|
| 1 | 1 | gonbatch | 2188 | 29.25 | 28.25 | 2.5 | 512 | 1.00 x |
| 1 | 1 | PyTorch DDP, best settings 2.15 | 1652 | 38.74 | 37.74 | 2.5 | 512 | 1.32 x |
| 1 | 1 | PyTorch DDP, defaults 2.15 | 1500 | 42.67 | 41.67 | 2.5 | 512 | 1.46 x |
| 1 | 1 | PyTorch DDP, the faster: best settings 2.15 | 1652 | 38.74 | 37.74 | 2.5 | 512 | 1.32 x |
| 2 | 1 | gonbatch | 4300 | 29.77 | 28.77 | 2.5 | 512 | 1.00 x |
| 2 | 1 | PyTorch DDP, best settings 2.15 | 2829 | 45.20 | 44.20 | 2.5 | 512 | 1.52 x |
| 2 | 1 | PyTorch DDP, defaults 2.15 | 3304 | 38.74 | 37.74 | 2.5 | 512 | 1.30 x |
| 2 | 1 | PyTorch DDP, the faster: defaults 2.15 | 3304 | 38.74 | 37.74 | 2.5 | 512 | 1.30 x |
| 2 | 1 | JAX (gloo) | 1000 | 128.00 | 127.00 | 2.5 | 512 | 4.30 x |
| 2 | 1 | gonbatch, ranks on their own | 4376 | 29.25 | 28.25 | 2.5 | 512 | 0.98 x |
| 2 | 1 | gonbatch, zero1 | 4000 | 32.00 | 31.00 | 2.5 | 512 | 1.00 x |
| 2 | 1 | PyTorch ZeRO 2.15 | 2000 | 64.00 | 63.00 | 2.5 | 512 | 2.00 x |
| 1 | 4 | gonbatch | 5000 | 12.80 | 11.80 | 2.5 | 512 | 1.00 x |
| 1 | 4 | PyTorch 2.15 | 4000 | 16.00 | 15.00 | 2.5 | 512 | 1.25 x |

2 ranks of one core take so many times as many inputs a second as one: gonbatch 1.97 times, with zero1 1.83 times, its ranks on their own 2.00 times, PyTorch, the faster, 2.00 times.

## ResNet-18

32 inputs for each rank, 5 steps a round.

| ranks | cores each | | inputs/s | ms a step | processor ms | first step s | peak MB | gonbatch is |
|--:|--:|---|--:|--:|--:|--:|--:|--:|
| 1 | 1 | gonbatch | 29.25 | 1094.00 | 1093.00 | 2.5 | 512 | 1.00 x |
`
	if got := report.markdown(); !strings.HasSuffix(got, want) {
		t.Errorf("table:\n%s\nwant at its end:\n%s", got, want)
	}
}

func TestCheckpointTable(t *testing.T) {
	report := checkpointReport{CPU: "A CPU", Load: "0.02", Bytes: 500e6, Rounds: 3}
	for _, seconds := range []float64{0.5, 2, 1} {
		report.add([]checkpointRow{{What: saveToDisk, Name: "gonbatch", Seconds: seconds}, {What: copyLater, Name: "gonbatch", Seconds: 0.1}})
		report.add(torchCheckpoint{Version: "2", SafetensorsVersion: "0.8", TorchSave: 2 * seconds, SafetensorsSave: 3, CopyFirst: 0.2, Copy: 0.05, TorchLoad: 1, SafetensorsLoad: 1}.rows()[1:4])
	}
	want := `# Checkpoints

500 MB in 80 tensors. Median of 3 rounds, in which the contenders take turns. A training run waits only
for the copy. A saved file is on disk (fsync). gonbatch's files have a SHA-256 each, which loading
verifies. Files are loaded from the page cache, and every byte is read. PyTorch has one thread.
A CPU, load average before: 0.02.

| | | seconds | MB/s | gonbatch is |
|---|---|--:|--:|--:|
| each later copy | gonbatch | 0.100 | 5000 | 1.00 x |
| each later copy | PyTorch 2, copy_ | 0.050 | 10000 | 0.50 x |
| save to disk | gonbatch | 1.000 | 500 | 1.00 x |
| save to disk | PyTorch 2, torch.save | 2.000 | 250 | 2.00 x |
| save to disk | safetensors 0.8, save_file | 3.000 | 167 | 3.00 x |
`
	if got := report.markdown(); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

func TestKernelTable(t *testing.T) {
	r := kernelReport{CPU: "x", LoadAverage: "0.1", Rounds: 3, Rows: []kernelRow{
		{Name: "ours", All: map[string][]float64{"start": {0.3, 0.1, 0.2}, "warm cell": {1}}}, {Name: "another"},
	}}
	got := r.markdown()
	for _, want := range []string{"Median of 3 sessions", "x; load average at the end 0.1.", "| ours | 0.200 s | | 1.000 s | | | | | |\n", "| another | | | | | | | | |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTrainerTable(t *testing.T) {
	report := trainerReport{CPU: "A CPU", Load: "0.02", Batch: 64, Steps: 100, Rounds: 3}
	for _, row := range []struct {
		name, version, model string
		ms, over             float64
	}{{"gonbatch", "", "cnn", 40, 0}, {"Lightning", "3", "cnn", 60, 0}, {"gonbatch", "", "linear", 1, 0.04}, {"Lightning", "3", "linear", 2, 1.2}} {
		loop := loopRow{Name: row.name, Version: row.version, Model: row.model, Ranks: 1}
		for _, slower := range []float64{4, 1, 2} {
			m := measurement{ImagesPerSecond: 64e3 / row.ms / slower, MillisPerStep: row.ms * slower, CPUPerStep: row.ms, Over: row.over * slower}
			loop.Rounds = append(loop.Rounds, m)
		}
		report.Loops = append(report.Loops, loop)
	}
	report.Checkpoints = []costOfSave{{Model: "cnn", Rounds: []measurement{{MillisPerStep: 41, Stall: 5, Extra: 9}, {MillisPerStep: 43, Stall: 7, Extra: 8}, {MillisPerStep: 42, Stall: 6, Extra: 7}}}}
	report.summarize()
	got := report.markdown()
	if strings.Contains(got, "busy") {
		t.Errorf("a load of %s counts as busy", report.Load)
	}
	if report.Load = "7.5"; !strings.Contains(report.markdown(), "before: 7.5. The machine was\nbusy with other work") {
		t.Errorf("a load of %s does not count as busy", report.Load)
	}
	for _, want := range []string{
		"|--:|---|--:|--:|--:|--:|\n| 1 | gonbatch | 800 | 80.00 | 40.00 | 1.00 x |\n| 1 | Lightning 3 | 533 | 120.00 | 60.00 | 1.50 x |\n\n",
		"|--:|---|--:|--:|\n| 1 | gonbatch | 80 | 0.10 % |\n| 1 | Lightning 3 | 2400 | 2.00 % |\n\n",
		"|---|--:|--:|--:|\n| cnn | 42.0 | 6.0 | 8.0 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("table:\n%s\nwant in it:\n%s", got, want)
		}
	}
}

func TestChanged(t *testing.T) {
	tests := []struct{ name, notebook, want, err string }{
		{
			name: "source as a list", notebook: `{"cells":[{"cell_type":"code","source":["a\n","b"]},{"cell_type":"markdown","source":"m"}]}`,
			want: `["a\n","b","+"]`,
		},
		{name: "source as a string", notebook: `{"cells":[{"cell_type":"code","source":"a"}]}`, want: `"a+"`},
		{name: "no code", notebook: `{"cells":[]}`, err: "no code cell"},
		{name: "not JSON", notebook: `{`, err: "notebook:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := changed([]byte(tt.notebook), "+")
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			flat := strings.NewReplacer(" ", "", "\n", "").Replace(string(got))
			if err != nil || !strings.Contains(flat, tt.want) {
				t.Errorf("%s, %v; want %s in it", flat, err, tt.want)
			}
		})
	}
}

// TestMeasure runs small programs instead of the contenders.
func TestMeasure(t *testing.T) {
	shell := func(scripts ...string) contender {
		return contender{name: "shell", start: func(ctx context.Context, _ []int, args []string) ([]*exec.Cmd, error) {
			var cmds []*exec.Cmd
			for _, script := range scripts {
				cmds = append(cmds, exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh"}, args...)...))
			}
			return cmds, nil
		}}
	}
	tests := []struct {
		name, err string
		contender contender
	}{
		{name: "both ranks end well", contender: shell(`echo '{"images_per_second":7,"ms_per_step":1}'`, "exit 0")},
		{name: "gets its arguments", contender: shell(`[ "$1 $2" = "--steps=3 --batch=4" ] && echo '{"images_per_second":7,"ms_per_step":1}'`)},
		{name: "a rank fails", contender: shell(`echo '{"images_per_second":7,"ms_per_step":1}'`, "echo went wrong >&2; exit 3"), err: "process 1: exit status 3\nwent wrong"},
		{name: "a rank fails and the other waits for it", contender: shell("exec sleep 600", "exit 3"), err: "process 1: exit status 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := tt.contender.measure(t.Context(), []int{0}, options{steps: 3, batch: 4})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || m.ImagesPerSecond != 7 {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// TestMPIRanks checks that every rank is pinned to its own core.
func TestMPIRanks(t *testing.T) {
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		machine.Lacks(t, "mpirun.openmpi not found: run `make setup`")
	}
	available, err := cores()
	if err != nil {
		t.Fatal(err)
	}
	for ranks := 1; ranks <= min(2, len(available)); ranks++ {
		cmds, err := mpi("bash")(t.Context(), available[:ranks], []string{"-c", "echo rank ${OMPI_COMM_WORLD_RANK:-0} on $(taskset -cp $$ | sed 's/.*: //')"})
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmds[0].CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for rank, core := range available[:ranks] {
			if want := "rank " + join([]int{rank}) + " on " + join([]int{core}); !strings.Contains(string(out), want) {
				t.Errorf("%d ranks: %q, want %q", ranks, out, want)
			}
		}
	}
}

func TestCompileTable(t *testing.T) {
	r := compileReport{CPU: "A CPU", LoadAverage: "0.1", Rounds: 3, Rows: []compileRow{
		{xlaPart, map[string][]float64{withoutCache: {3, 2, 4}, emptyCache: {3.1, 3.2, 3.3}, fullCache: {0.1, 0.05, 0.2}}},
		{sameCell, map[string][]float64{withoutCache: {2}, fullCache: {0.5}}},
	}}
	got := r.markdown()
	for _, want := range []string{"Median of 3 rounds. A CPU, load average before: 0.1.", "| " + xlaPart + " | 3.00 s | 3.20 s | 0.10 s | 30.0 x |\n", "| " + sameCell + " | 2.00 s | | 0.50 s | 4.0 x |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestLoaderTable(t *testing.T) {
	ours, theirs := contender{name: "gonbatch"}, contender{name: "Pillow"}
	report := loaderReport{CPU: "A CPU", Load: "0.1", Decoder: "libjpeg-turbo", Batch: 64, Steps: 100, Rounds: 3, Tables: []loaderTable{
		{Title: "JPEGs.", contenders: []contender{ours, theirs}, shows: imagesPerSecond, Rows: byWorkers(1)},
		{Title: "Waiting.", contenders: []contender{ours}, shows: deviceIdle, Rows: []loaderRow{{Name: "1 worker"}}},
	}}
	for _, table := range report.Tables {
		for i := range table.Rows {
			table.Rows[i].Found = map[string][]measurement{}
			for _, speed := range []float64{300, 1, 200} {
				table.Rows[i].Found["gonbatch"] = append(table.Rows[i].Found["gonbatch"], measurement{ImagesPerSecond: speed, DataWait: 1 / speed})
				table.Rows[i].Found["Pillow"] = append(table.Rows[i].Found["Pillow"], measurement{Version: "2.15", ImagesPerSecond: speed / 2})
			}
		}
	}
	got := report.markdown()
	for _, want := range []string{
		"JPEGs in gonbatch: libjpeg-turbo.\nA CPU, load average before: 0.1.\n\nJPEGs.\n\n",
		"| | gonbatch, images/s | Pillow 2.15, images/s | gonbatch is |\n|---|--:|--:|--:|\n| 0 workers | 200 | 100 | 2.00 x |\n| 1 worker | 200 | 100 | 2.00 x |\n",
		"| | gonbatch, device idle |\n|---|--:|\n| 1 worker | 0.50 % |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestInferenceTable(t *testing.T) {
	r := inferenceReport{CPU: "A CPU", Load: "0.1", Rounds: 3, Versions: []string{"with XLA", "2.15"}, Networks: []inferenceNetwork{{Title: "CNN"}}}
	for _, slower := range []float64{1, 4, 2} {
		var line inferenceLine
		if err := json.Unmarshal(fmt.Appendf(nil, `{"sizes": [{"batch": 1, "ms": %g, "cpu_ms": 1}, {"batch": 16, "ms": %g, "cpu_ms": 4}]}`, slower, 5*slower), &line); err != nil {
			t.Fatal(err)
		}
		r.Networks[0].add(true, line)
		line.Sizes[1].Millis *= 1.5
		r.Networks[0].add(false, line)
	}
	got := r.markdown()
	for _, want := range []string{"gonbatch with XLA, and\nPyTorch 2.15 with eval", "| 1 | 2.00 | 500 | 2.00 | 500 | 1.00 x | 1.00 | 1.00 | 1.00 x |\n| 16 | 10.00 | 1600 | 15.00 | 1067 | 1.50 x | 4.00 | 4.00 | 1.00 x |\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
