package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"gonbatch/distributed/device"
	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
)

// bench has what all checks need, and what they have measured.
type bench struct {
	options
	gpus  int
	first string // The first GPU, as CUDA_VISIBLE_DEVICES has it.
	title string // What the machine is.
	// gpu has the figures of the GPUs; unknown is why there are none.
	gpu     forecast.GPU
	unknown error
	plugin  cuda
	// self is this program; what it runs lies beside it.
	self      string
	temporary string
	// cold and warm are the steps of a network on one GPU, with an empty cache and a full one.
	cold, warm map[string]figures
	until      time.Time
	results    *results
	checking   string           // The name of the check that runs.
	peers      map[string]error // Why packages of Python are missing; nil for those that are there.
}

// kit is the path of what the kit has.
func (b *bench) kit(name ...string) string {
	return filepath.Join(append([]string{filepath.Dir(b.self)}, name...)...)
}

// prepare finds the GPUs and the plugin.
func (b *bench) prepare(ctx context.Context, out io.Writer) (err error) {
	facts := device.Look("/", os.LookupEnv)
	if len(facts.GPUs) == 0 {
		return errors.New("no GPU that this process may open: there is no /dev/nvidia0, or its permissions forbid it; in a container, start it with its GPUs")
	}
	facts.Platform, facts.Size = plugin.CUDA, 1
	names := facts.Describe("/", len(facts.GPUs))
	if names == "" {
		return fmt.Errorf("CUDA_VISIBLE_DEVICES=%q hides all GPUs, or names one twice or one that is not there", facts.Visible)
	}
	first, _, _ := strings.Cut(facts.Visible, ",")
	b.gpus, b.first = len(number.FindAllString(names, -1)), cmp.Or(first, "0")
	b.gpu, b.unknown = target(b.target, names)
	if b.python == "" {
		b.python = "python3"
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.temporary, err = os.MkdirTemp("", "gonbatch-gpu-"); err != nil {
		return err
	}
	if b.results, err = newResults(out, b.out); err != nil {
		return err
	}
	b.title = fmt.Sprintf("%s: %s, driver %s; %s", plural.Of(b.gpus, "GPU"), names, cmp.Or(device.Driver("/"), "unknown"), plural.Of(runtime.NumCPU(), "CPU"))
	host, _ := os.Hostname() // It is for people.
	b.results.say("%s, %s on %s\n%s\n", version(), time.Now().Format(time.DateTime), host, b.title)
	b.results.say("%s\n", smi(ctx))
	if b.install {
		b.results.say("installing XLA's plugin for CUDA, unless it is there\n")
		if _, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CUDA, Progress: os.Stderr}); err != nil {
			return err
		}
	}
	if b.plugin, err = findCUDA(ctx, b.python, b.temporary); err != nil {
		return err
	}
	b.results.say("plugin: %s (%s); the output of each check: %s\n\n", b.plugin.dir, b.plugin.from, b.out)
	return nil
}

// close removes what the checks have written, but for the results.
func (b *bench) close() {
	if err := os.RemoveAll(b.temporary); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check: warning:", err)
	}
}

// smi is what NVIDIA's tool says of each GPU, or why it says nothing.
func smi(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second) // It may hang where a driver does.
	defer cancel()
	out, err := combined(ctx, exec.Command("nvidia-smi", "--query-gpu=index,name,driver_version,memory.total,memory.used,compute_cap,power.limit", "--format=csv,noheader"))
	if err != nil {
		return fmt.Sprintf("nvidia-smi: %v: %s", err, out)
	}
	return out
}

// commit is that of the sources, which scripts/gpu-kit.sh sets.
var commit string

// version says of what sources the kit is.
func version() string {
	text := resultsBegin
	if commit != "" {
		text += " of commit " + commit
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return text
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/gomlx/gomlx" || m.Path == "github.com/gomlx/go-xla" {
			text += ", " + path.Base(m.Path) + " " + m.Version
		}
	}
	return text
}

// number matches a GPU in what the driver says.
var number = regexp.MustCompile(`(?:^|, )GPU [^\s,]+`)

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
