package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gonbatch/distributed/device"
	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// bench has what all checks need, and what they have measured.
type bench struct {
	options
	gpus  int
	names string // Of the GPUs.
	first string // The first GPU, as CUDA_VISIBLE_DEVICES has it.
	// gpu has the figures of the GPUs; unknown is why there are none.
	gpu     forecast.GPU
	unknown error
	// self is this program, and step that of bench/step.
	self, step string
	// cache has the compiled programs of this run.
	cache string
	// cold and warm are the steps of a network on one GPU, with an empty cache and a full one.
	cold, warm map[string]figures
	until      time.Time
	table      table
}

// prepare finds the GPUs, installs the plugin and compiles the programs.
func prepare(ctx context.Context, o options) (*bench, error) {
	facts := device.Look("/", os.LookupEnv)
	if len(facts.GPUs) == 0 {
		return nil, errors.New("no GPU that this process may open: /dev has no nvidia0, or its permissions forbid it")
	}
	facts.Platform, facts.Size = plugin.CUDA, 1
	names := facts.Describe("/", len(facts.GPUs))
	if names == "" {
		return nil, fmt.Errorf("CUDA_VISIBLE_DEVICES=%q hides all GPUs, or names one that is not there", facts.Visible)
	}
	first, _, _ := strings.Cut(facts.Visible, ",")
	b := &bench{options: o, gpus: strings.Count(names, "GPU "), names: names, first: cmp.Or(first, "0"), cold: map[string]figures{}, warm: map[string]figures{}}
	b.gpu, b.unknown = target(o.target, b.names)
	fmt.Fprintln(os.Stderr, "gpu-check: installing XLA's plugin for CUDA, unless it is there")
	if _, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CUDA, Progress: os.Stderr}); err != nil {
		return nil, err
	}
	var err error
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.cache, err = os.MkdirTemp("", "gonbatch-gpu-"); err != nil {
		return nil, err
	}
	b.step = filepath.Join(b.cache, "step")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.step, "./bench/step").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("go build ./bench/step: %w\n%s", err, out), os.RemoveAll(b.cache))
	}
	b.until = time.Now().Add(o.limit)
	b.table.title = fmt.Sprintf("%s: %s, driver %s", plural.Of(b.gpus, "GPU"), b.names, orUnknown(device.Driver("/")))
	return b, nil
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// model matches a GPU's name in what the driver says: GPU 0 (NVIDIA H100 80GB HBM3).
var model = regexp.MustCompile(`\(([^)]*)\)`)

// target is the GPU that the user names, or the driver.
func target(given, names string) (forecast.GPU, error) {
	if given != "" {
		return forecast.Find(given)
	}
	m := model.FindStringSubmatch(names)
	if m == nil {
		return forecast.GPU{}, errors.New("the driver does not name the GPU: give -target")
	}
	return forecast.OfType(strings.ReplaceAll(m[1], " ", "_"))
}

// environ is that of a rank.
func (b *bench) environ(rank, size int, master string) []string {
	host, port, _ := strings.Cut(master, ":")
	env := append(os.Environ(), rundir.EnvPlatform+"="+plugin.CUDA, rundir.EnvDevices+"=1", rundir.EnvCompileCache+"="+filepath.Join(b.cache, "programs"))
	return append(env, fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", size), fmt.Sprintf("LOCAL_RANK=%d", rank), fmt.Sprintf("LOCAL_WORLD_SIZE=%d", size),
		"MASTER_ADDR="+host, "MASTER_PORT="+port)
}
