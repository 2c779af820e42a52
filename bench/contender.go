package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/rundir"
)

// measurement is what a program prints as its last line: one JSON object.
type measurement struct {
	Version         string  `json:"version"`
	ImagesPerSecond float64 `json:"images_per_second"`
	MillisPerStep   float64 `json:"ms_per_step"`
	// FirstStepAt is when the first step was done, in seconds since 1970. FirstStep is how long
	// after the start that was; measure sets it.
	FirstStepAt float64 `json:"first_step_at"`
	FirstStep   float64 `json:"first_step_seconds"`
	PeakMB      float64 `json:"peak_mb"` // The most memory that the first rank used.
	// CPUPerStep is the first rank's processor time, in milliseconds. It and the following are
	// there only if requested: how much longer a step takes in a trainer's loop than in a bare one,
	// and the costs of a checkpoint.
	CPUPerStep float64 `json:"cpu_ms_per_step"`
	DataWait   float64 `json:"data_wait"` // The share of the time in which steps waited for batches.
	Over       float64 `json:"over_ms"`
	MeanOver   float64 `json:"mean_over_ms"`
	Stall      float64 `json:"stall_ms"`
	Extra      float64 `json:"extra_ms"`
}

// contender is a program that takes the training step.
type contender struct {
	name  string
	start starter
	apart bool // Its processes don't know of one another, and each measures itself alone.
	zero1 bool // Each rank has a part of the optimizer's state.
}

// starter returns the processes of a measurement, one rank for each of the given cores, or one for
// all of them. The first process prints the measurement.
type starter func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error)

// contenders builds gonbatch's own program, and returns it with its peers. They are started by own
// and others.
func contenders(ctx context.Context, n network, own func(program string) starter, others func(command ...string) starter) ([]contender, error) {
	program, err := build(ctx, "./bench/step", "bench-step")
	if err != nil {
		return nil, err
	}
	python := filepath.Join(".cache", "bench-venv", "bin", "python")
	if _, err := os.Stat(python); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no Python environment with PyTorch and JAX: run tests/setup.sh bench", python)
	}
	// XLA compiles the first step, as in JAX.
	ours := contender{name: oursTogether, start: own(program)}.with("--model=" + n.name).environ(rundir.EnvCompileCache + "=" + compilecache.Off)
	torch := contender{start: others(python, "bench/peers/pytorch_ddp.py")}.with("--model=" + n.name)
	best, defaults := torch.with("--best").environ(keepMemory...), torch
	best.name, defaults.name = torchBest, torchDefaults
	jax := contender{name: jaxGloo, start: others(python, "bench/peers/jax_spmd.py")}.with("--model=" + n.name).environ(keepMemory...)
	return []contender{ours, best, defaults, jax}, nil
}

// The peers. Which way of PyTorch's is faster depends on the network.
const (
	torchBest     = "PyTorch DDP, best settings"
	torchDefaults = "PyTorch DDP, defaults"
	jaxGloo       = "JAX (gloo)"
)

// keepMemory makes glibc's malloc keep large blocks that are freed, in huge pages, as gonbatch does
// by itself: PyTorch's backward pass runs in a thread, and the malloc of other threads than the
// first can't keep blocks of more than 64 MiB. Huge pages need glibc 2.35; older ones ignore the
// tunable.
var keepMemory = []string{
	"MALLOC_MMAP_THRESHOLD_=1073741824", "MALLOC_TRIM_THRESHOLD_=17179869184",
	"GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1",
}

// build compiles a command of this module and returns the program's absolute path.
func build(ctx context.Context, pkg, name string) (string, error) {
	program, err := filepath.Abs(filepath.Join(".cache", "bin", name))
	if err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}

// mpi starts a program directly for one rank, and with mpirun for several. Each rank pins itself to
// its core.
func mpi(program string) starter {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		words := append(pinned(cores, program), args...)
		if len(cores) > 1 {
			words = append([]string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", strconv.Itoa(len(cores))}, words...)
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Env = append(os.Environ(), rundir.EnvDevices+"=1", rundir.EnvPlatform+"=cpu")
		return []*exec.Cmd{cmd}, nil
	}
}

// pinned returns a command line that runs a program on its rank's core.
func pinned(cores []int, program string) []string {
	// $1 has the cores, in the order of the ranks.
	return []string{"bash", "-c", `cores=($1); shift; exec taskset -c "${cores[${OMPI_COMM_WORLD_RANK:-0}]}" "$@"`, "pin", join(cores), program}
}

// apart starts a program once for each core, pinned to it, as that many jobs of one rank.
func apart(program string) starter {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		var cmds []*exec.Cmd
		for _, core := range cores {
			alone, err := mpi(program)(ctx, []int{core}, args)
			if err != nil {
				return nil, err
			}
			cmds = append(cmds, alone...)
		}
		return cmds, nil
	}
}

// torchrun starts a command once for each rank, with the variables that torchrun sets, each pinned
// to its core.
func torchrun(command ...string) starter {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		var cmds []*exec.Cmd
		for rank, core := range cores {
			cmd := exec.CommandContext(ctx, "taskset", slices.Concat([]string{"-c", strconv.Itoa(core)}, command, args)...)
			cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(port),
				"WORLD_SIZE="+strconv.Itoa(len(cores)), "RANK="+strconv.Itoa(rank))
			cmds = append(cmds, cmd)
		}
		return cmds, nil
	}
}

// with puts the contender's own arguments before those of the measurement.
func (c contender) with(own ...string) contender {
	start := c.start
	c.start = func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		return start(ctx, cores, append(slices.Clone(own), args...))
	}
	return c
}

// dividing lets the ranks divide the optimizer's state.
func (c contender) dividing() contender {
	c = c.with("--zero1")
	c.zero1 = true
	return c
}

// environ adds variables to the environment of all processes.
func (c contender) environ(variables ...string) contender {
	start := c.start
	c.start = func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		cmds, err := start(ctx, cores, args)
		for _, cmd := range cmds {
			cmd.Env = append(cmd.Env, variables...)
		}
		return cmds, err
	}
	return c
}

// measure runs a contender once.
func (c contender) measure(ctx context.Context, cores []int, opts options) (measurement, error) {
	started := float64(time.Now().UnixMilli()) / 1000
	out, err := c.run(ctx, cores, "--steps="+strconv.Itoa(opts.steps), "--batch="+strconv.Itoa(opts.batch))
	if err != nil {
		return measurement{}, err
	}
	m, err := parse(c.name, out)
	if c.apart {
		m.ImagesPerSecond *= float64(len(cores))
	}
	if m.FirstStepAt > 0 {
		m.FirstStep = m.FirstStepAt - started
	}
	return m, err
}

// run runs a contender's processes to their end, and returns what the first one prints.
func (c contender) run(ctx context.Context, cores []int, args ...string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmds, err := c.start(ctx, cores, args)
	if err != nil {
		return "", err
	}
	outs := make([]strings.Builder, len(cmds))
	logs := make([]strings.Builder, len(cmds))
	failures := make([]error, len(cmds))
	var running sync.WaitGroup
	for i, cmd := range cmds {
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &outs[i], &logs[i], 5*time.Second
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // mpirun ends its ranks
		running.Go(func() {
			err := cmd.Run()
			if err != nil && ctx.Err() == nil {
				failures[i] = fmt.Errorf("%s, process %d: %w\n%s%s", c.name, i, err, outs[i].String(), logs[i].String())
				cancel() // the other ranks would wait for this one
			}
		})
	}
	running.Wait()
	return outs[0].String(), errors.Join(append(failures, ctx.Err())...)
}

// lastLine returns the last line that a program printed.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// parse reads the last line of a program's output.
func parse(name, out string) (measurement, error) {
	var m measurement
	if err := json.Unmarshal([]byte(lastLine(out)), &m); err != nil {
		return m, fmt.Errorf("%s: its last line is not a measurement: %w\n%s", name, err, out)
	}
	if m.ImagesPerSecond <= 0 || m.MillisPerStep <= 0 {
		return m, fmt.Errorf("%s: its measurement has no images_per_second or ms_per_step: %s", name, lastLine(out))
	}
	return m, nil
}

// cores returns the CPUs that this process may use.
func cores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	var list []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func join(cores []int) string {
	words := make([]string, len(cores))
	for i, core := range cores {
		words[i] = strconv.Itoa(core)
	}
	return strings.Join(words, " ")
}
