// Command kernel measures Jupyter kernels side by side: gonbatch's, GoNB by itself, and ipykernel.
// Each round starts a new session of each in turn; the table has the medians. It wants what `make
// setup` installs, and an otherwise idle machine.
//
//	go run ./bench/kernel >bench/results/kernel.md      # five rounds
//	go run ./bench/kernel -rounds 3
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
)

//go:embed measure.py
var measureScript string

// contenders are the kernels, by their names in Jupyter.
var contenders = []struct{ title, name string }{{"gonbatch", kernel.Name}, {"GoNB 0.11.4", "gonb"}, {"ipykernel 7", "python3"}}

// measures are the columns, in order.
var measures = []string{"start", "first cell", "warm cell", "XLA cell", "its CPU time", "first completion", "next completion", "completion in GoMLX"}

func main() {
	rounds := flag.Int("rounds", 5, "sessions of each kernel")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench/kernel:", err)
		os.Exit(1)
	}
}

func run(rounds int) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-kernel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	env, err := install(root, dir)
	if err != nil {
		return err
	}
	seconds := map[string]map[string][]float64{}
	for round := range rounds {
		for _, c := range contenders {
			measured, err := measure(root, c.name, dir, env)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", c.title, round+1, err)
			}
			if seconds[c.name] == nil {
				seconds[c.name] = map[string][]float64{}
			}
			for name, value := range measured {
				seconds[c.name][name] = append(seconds[c.name][name], value)
			}
		}
	}
	on, err := machine()
	if err != nil {
		return err
	}
	fmt.Printf("# Kernels\n\nSeconds that a client waits for: %s\nMedian of %d sessions of each kernel; they take turns. %s.\n\n", meaning, rounds, on)
	return printTable(seconds)
}

// meaning says what the columns are.
const meaning = `the start of the kernel until it answers; the session's first
cell, and a changed cell after it; a changed cell that runs a GoMLX program on XLA, and its CPU time;
the first completion in a standard package, the next one, and one in GoMLX. A field is empty if a
kernel lacks the feature, or didn't answer ten times. GoNB's cells have a complete go.mod and no
automatic go get.`

// machine names the processor, and how busy it was with other things.
func machine() (string, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return "", err
	}
	cpus, err := fs.CPUInfo()
	if err != nil {
		return "", err
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d cores; load average at the end %v", cpus[0].ModelName, len(cpus), load.Load1), nil
}

// install installs the kernels below dir and returns the environment in which clients find them.
func install(root, dir string) ([]string, error) {
	submit := filepath.Join(dir, "submit")
	build := exec.Command("go", "build", "-o", submit, "./cmd/submit")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build submit: %w: run it in the root of the source tree", err)
	}
	if _, err := kernel.Install(kernel.InstallOptions{DataDir: dir, Program: submit}); err != nil {
		return nil, err
	}
	bin := filepath.Join(root, ".cache", "bin")
	spec, err := json.Marshal(map[string]any{
		"argv": []string{filepath.Join(bin, "gonb"), "--kernel", "{connection_file}"}, "display_name": "GoNB", "language": "go",
	})
	if err != nil {
		return nil, err
	}
	plain := filepath.Join(dir, "kernels", "gonb")
	if err := os.MkdirAll(plain, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(plain, "kernel.json"), spec, 0o644); err != nil {
		return nil, err
	}
	if err := writeModule(root, dir); err != nil {
		return nil, err
	}
	plugins, err := plugin.Ensure(context.Background(), plugin.Options{Platform: plugin.CPU, Progress: os.Stderr, Getenv: os.Getenv})
	if err != nil {
		return nil, err
	}
	return append(os.Environ(), rundir.EnvXLAPath+"="+plugins, rundir.EnvXLANoInstall+"=1", "GOFLAGS=-mod=mod", "JUPYTER_DATA_DIR="+dir, rundir.EnvSource+"="+root, "XDG_STATE_HOME="+dir,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH")), nil
}

// writeModule writes the go.mod and go.sum of a module that has GoMLX, for GoNB, which starts with
// an empty one.
func writeModule(root, dir string) error {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	text := strings.Replace(string(mod), "module gonbatch", "module session", 1)
	return errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644), os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
}

// measure runs one session in a real client.
func measure(root, name, dir string, env []string) (map[string]float64, error) {
	cmd := exec.Command(filepath.Join(root, ".cache", "venv", "bin", "python"), "-c", measureScript, name, dir)
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return nil, err
	}
	var seconds map[string]float64
	return seconds, json.Unmarshal(out, &seconds)
}

func printTable(seconds map[string]map[string][]float64) error {
	fmt.Println("| | " + strings.Join(measures, " | ") + " |")
	fmt.Println("|---" + strings.Repeat("|--:", len(measures)) + "|")
	for _, c := range contenders {
		fmt.Printf("| %s |", c.title)
		for _, name := range measures {
			values := seconds[c.name][name]
			if len(values) == 0 {
				fmt.Print(" |") // Python's kernel has no GoMLX
				continue
			}
			slices.Sort(values)
			fmt.Printf(" %.3f s |", values[len(values)/2])
		}
		fmt.Println()
	}
	return nil
}
