package device_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/device"
)

func TestLook(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "dev"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia-uvm"} {
		if err := os.WriteFile(filepath.Join(root, "dev", name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// Even root can't open a folder for writing, so it acts like a device that belongs to another
	// job.
	if err := os.Mkdir(filepath.Join(root, "dev", "nvidia3"), 0o777); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"CUDA_VISIBLE_DEVICES": "", "SLURM_GPUS_ON_NODE": "2", "SLURM_JOB_GPUS": "0,1"}
	f := device.Look(root, func(name string) (string, bool) { value, ok := env[name]; return value, ok })
	if !slices.Equal(f.GPUs, []int{0, 2, 10}) || f.Closed != 1 || !f.IsSet || f.Visible != "" || f.Granted != "SLURM_GPUS_ON_NODE=2" {
		t.Errorf("facts: %+v", f)
	}
	f = device.Look(t.TempDir(), func(string) (string, bool) { return "", false })
	if len(f.GPUs) != 0 || f.IsSet || f.Granted != "" {
		t.Errorf("facts of a machine without GPUs: %+v", f)
	}
}

// gpu returns the facts of one of two ranks that compute on GPUs.
func gpu(rank int, host string, change func(*device.Facts)) device.Facts {
	f := device.Facts{Rank: rank, Size: 2, LocalRank: rank, Host: host, Platform: "cuda", GPUs: []int{0, 1}}
	if change != nil {
		change(&f)
	}
	return f
}

func visible(text string) func(*device.Facts) {
	return func(f *device.Facts) { f.Visible, f.IsSet = text, true }
}

// own is for a scheduler that lets the rank open only one GPU, which CUDA then calls 0.
func own(number int) func(*device.Facts) {
	return func(f *device.Facts) { f.GPUs, f.Closed, f.Visible, f.IsSet = []int{number}, 1, "0", true }
}

func cpu(change func(*device.Facts)) func(*device.Facts) {
	return func(f *device.Facts) {
		f.Platform = "cpu"
		change(f)
	}
}

func none(f *device.Facts) { f.GPUs = nil }

func TestCheck(t *testing.T) {
	all := func(f *device.Facts) {}
	alone := func(change func(*device.Facts)) []device.Facts {
		return []device.Facts{gpu(0, "n1", func(f *device.Facts) { f.Size = 1; change(f) })}
	}
	second := func(change func(*device.Facts)) []device.Facts {
		return []device.Facts{gpu(0, "n1", nil), gpu(1, "n2", func(f *device.Facts) { f.LocalRank = 0; change(f) })}
	}
	both := func(a, b func(*device.Facts)) []device.Facts {
		return []device.Facts{gpu(0, "n1", a), gpu(1, "n1", b)}
	}
	tests := []struct {
		name    string
		ranks   []device.Facts
		want    []string // In the error; none if there is no error.
		warning string
	}{
		{name: "one rank, all GPUs", ranks: alone(all)},
		{name: "two ranks on one node", ranks: both(all, all)},
		{name: "two nodes", ranks: second(all)},
		{name: "each sees its own", ranks: both(own(0), own(1))},
		{name: "each has its own by name", ranks: both(visible("GPU-aaaa"), visible("GPU-bbbb"))},
		{name: "all visible to both", ranks: both(visible("0,1"), visible("0,1"))},

		{name: "no GPU", ranks: second(none), want: []string{"rank 1 on n2: there is no GPU: /dev has no nvidia0", "--gpus-per-node"}},
		{name: "only GPUs of others", ranks: second(func(f *device.Facts) { f.GPUs, f.Closed = nil, 4 }), want: []string{"rank 1 on n2", "/dev has 4 GPUs, but this job may open none"}},
		{name: "empty", ranks: second(visible("")), want: []string{`rank 1 on n2: CUDA_VISIBLE_DEVICES="" hides all GPUs`}},
		{name: "NoDevFiles", ranks: alone(visible("NoDevFiles")), want: []string{`rank 0 on n1: CUDA_VISIBLE_DEVICES="NoDevFiles" hides all GPUs`}},
		{name: "odd", ranks: second(visible("0,two")), want: []string{`rank 1 on n2: CUDA_VISIBLE_DEVICES="0,two": "two" is neither`}},
		{name: "an empty entry", ranks: alone(visible("0,,1")), want: []string{`"" is neither`}},
		{name: "one that is not there", ranks: second(visible("0,7")), want: []string{`rank 1 on n2: CUDA_VISIBLE_DEVICES="0,7": there is no GPU 7, the process may open 2 GPUs`}},
		{name: "twice", ranks: alone(visible("1,1")), want: []string{`names GPU 1 twice`}},
		{name: "two ranks on one GPU", ranks: both(visible("1"), visible("1")), want: []string{"rank 0 and rank 1 on n1 use the same GPU 1"}},
		{name: "more tasks than devices", ranks: both(all, func(f *device.Facts) { f.LocalRank = 2 }), want: []string{"rank 1 on n1 is number 3 of the ranks on its node, but sees 2 GPUs: more tasks than devices", "--tasks-per-node 2"}},
		{name: "two faults", ranks: []device.Facts{gpu(0, "n1", none), gpu(1, "n2", visible(""))}, want: []string{"rank 0 on n1: there is no GPU", "rank 1 on n2: CUDA_VISIBLE_DEVICES"}},
		{name: "GPUs here and none there", ranks: second(cpu(none)), want: []string{"rank 0 on n1 computes on cuda, but rank 1 on n2 on cpu (rank 1 on n2: /dev has no nvidia0)", "GONBATCH_PLATFORM"}},
		{name: "GPUs here and no plugin there", ranks: second(cpu(all)), want: []string{"rank 1 on n2 has GPUs, but no CUDA plugin"}},

		{name: "CPUs", ranks: both(cpu(none), cpu(none))},
		{name: "CPUs by choice", ranks: alone(cpu(func(f *device.Facts) { f.Asked = true }))},
		{name: "granted, but not there", ranks: alone(cpu(func(f *device.Facts) { f.GPUs, f.Granted = nil, "SLURM_GPUS_ON_NODE=2" })), warning: "rank 0 on n1 computes on the CPU, though the scheduler gave it GPUs (SLURM_GPUS_ON_NODE=2): /dev has no nvidia0"},
		{name: "there, but hidden", ranks: alone(cpu(visible(""))), warning: "CUDA_VISIBLE_DEVICES is empty, which hides its 2 GPUs"},
		{name: "there, but no plugin", ranks: alone(cpu(all)), warning: "the CUDA plugin is not installed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			warnings, err := device.Check(test.ranks)
			if (err == nil) != (len(test.want) == 0) {
				t.Errorf("error: %v; want %q", err, test.want)
			}
			for _, want := range test.want {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
			if text := strings.Join(warnings, "\n"); (text == "") != (test.warning == "") || !strings.Contains(text, test.warning) {
				t.Errorf("warnings: %q; want %q", text, test.warning)
			}
		})
	}
}

func TestPick(t *testing.T) {
	tests := []struct {
		name  string
		facts device.Facts
		want  int
	}{
		{"the local rank's", gpu(1, "n1", nil), 1},
		{"its own", gpu(1, "n1", own(1)), 0},
		{"the only visible one", gpu(1, "n1", visible("1")), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := test.facts.Pick(); err != nil || got != test.want {
				t.Errorf("got %d, %v; want %d", got, err, test.want)
			}
		})
	}
}
