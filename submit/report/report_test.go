package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/rundir"
	"gonbatch/submit/report"
	"gonbatch/tests/page"
)

var at = time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)

var failed = report.Run{
	Run: "mnist-20261121-101500-4f2a", Directory: "/home/ada/runs/mnist-20261121-101500-4f2a", Scheduler: "slurm", Job: "4711", Cluster: "alps",
	Notebook: "/home/ada/mnist.ipynb", Created: at, State: "failed", Ended: true, Message: "failed: NonZeroExitCode", Reason: "NonZeroExitCode",
	ExitCode: 2, Restarts: 1, Cells: report.Cells{All: 2, Finished: 1},
	Checkpoint: &report.Checkpoint{Update: 937, Time: at.Add(time.Minute), Folder: "/home/ada/runs/mnist-20261121-101500-4f2a/checkpoints/train"},
	Used:       &report.Used{Memory: 22 << 30, Node: "n2", CPUs: 5.2, Advice: "--mem 28G --cpus-per-task 6"},
	Failure:    "job 4711 (mnist-20261121-101500-4f2a): failed: NonZeroExitCode, exit code 2",
}

var forecasted = report.Forecast{
	Cell: "train", World: forecast.World{Target: "h100", Nodes: 2, GPUsPerNode: 4}, GPU: "NVIDIA H100 80 GB SXM", Origin: "NVIDIA H100 data sheet (2023); network of the DGX H100",
	Capacity: 84978434048, Usable: 63733825536, Fits: true,
	Answer: forecast.Answer{Batch: 64, Examples: 60000, Memory: forecast.Memory{Parameters: 1686568, Optimizer: 3373140, Batch: 6312, Copies: 5059716, Activations: 1990000, Total: 12115736},
		FLOPs: 2e8, BytesMoved: 10171156, Reduced: 1686568, Collectives: []string{"all-reduce"}},
	Floor: forecast.Floor{Compute: 4.04e-7, Memory: 3.03e-6, Network: 8.43e-6, Step: 8.43e-6},
}

// shapes are examples of all reports, with the commands that print them.
var shapes = []struct {
	command, about string
	example        report.Report
}{
	{"submit [flags] NOTEBOOK, submit resume, submit preflight", "`job` is missing for a run on this machine. `follow` is the command that shows the job's log. With `--no-submit`, `queue` is the command that queues the job. `expected` is when the scheduler expected the job to start, if it has said so.",
		report.Submission{Run: failed.Run, Directory: failed.Directory, Scheduler: "slurm", Job: "4711", Name: "mnist", Nodes: 2, Ranks: 8, Follow: "submit logs -f 4711",
			Expected: &report.Expected{Start: at.Add(12 * time.Minute), Seconds: 720, Nodes: "n[1-2]", Partition: "gpu"}}},
	{"submit status RUN", "`state` is `staged`, `pending`, `running`, `suspended`, `completed`, `failed`, `stopped`, `cancelled`, `timed out`, `out of memory`, `node failed`, `preempted`, `lost` or `unknown`, and `ended` says whether the run has ended. `message` describes the state for people, and `reason` is the scheduler's own word. If the scheduler doesn't answer, the state is `unknown`, and `error` says why. `cells` counts the cells that the job runs. `used` is what an ended job has used: the most memory on one node, and the CPUs that a rank kept busy on average; `advice` has options that fit better, if those of the job were far off. `failure` says why a run failed, with the end of its log.", failed},
	{"submit status, submit list", "`runs` lists the objects of `submit status RUN`, newest last, without `checkpoint` and `failure`, and with `used` only if `submit list --used` asks for it. A run whose state can't be found has an `error`.",
		report.Runs{Root: "/home/ada/runs", Runs: []report.Run{{Run: failed.Run, Directory: failed.Directory, Scheduler: "local", Notebook: failed.Notebook, Created: at, State: "running", Message: "running"}}}},
	{"submit hold RUN..., submit release RUN..., submit requeue RUN..., submit update RUN...", "There is one object for each run. `done` is `held`, `released` or `requeued`, or lists the options that were updated.",
		report.Control{Run: failed.Run, Directory: failed.Directory, Job: "4711", Done: "updated: partition, time"}},
	{"submit cancel RUN...", "There is one object for each run. If the job had already ended, `ended` says how; if the job was cancelled, `ended` is missing.",
		report.Cancellation{Run: failed.Run, Directory: failed.Directory, Job: "4711"}},
	{"submit check NOTEBOOK", "`cells` lists the cells that a job would run. Findings of go vet, warnings and notes each name their cell and line.",
		report.Check{Notebook: "mnist.ipynb", Cells: []rundir.Cell{{Name: "train", Number: 4, ID: "c4", Args: []string{"-epochs", "3"}}}, Notes: []string{"mnist.ipynb, cell 3 (id c3), line 2: every rank of a job calls os.Create for the same file; guard it with if world.IsMain(), or tag the main cell rank-0"}}},
	{"submit check --target GPU NOTEBOOK", "`forecast` is what a training step needs on each GPU, in bytes, operations and seconds: `usable` is the part of the GPU's memory that XLA takes, `copies` are results that don't reuse the memory of an argument, and `floor` is the shortest time that the data sheet named by `origin` allows. If the step does not fit, `fits` is false, `error` says so, `largest` is the largest batch that fits, if there is one, and the exit code is 1.",
		report.Check{Notebook: "mnist.ipynb", Cells: []rundir.Cell{{Name: "train", Number: 4, ID: "c4"}}, Forecast: &forecasted}},
	{"submit params NOTEBOOK", "`-p` sets parameters; flags follow `--`.",
		report.Params{Notebook: "mnist.ipynb", Parameters: []report.Param{{Name: "layers", Type: "int", Default: "2", Cell: 2}}, Flags: []report.Param{{Name: "epochs", Type: "int", Default: "2", Usage: "passes over the data", Cell: 3}}}},
	{"submit config", "`origin` is `default`, a flag, a variable, or a file and line.",
		report.Config{Settings: []report.Setting{{Key: "nodes", Value: "2", Origin: "/home/ada/submit.yaml:3"}}, Files: []string{"/home/ada/submit.yaml"}}},
	{"submit export -o DIR NOTEBOOK", "`commands` start the exported cells.", report.Export{Folder: "mnist", Commands: []string{"cd mnist && go run ./train"}}},
	{"submit export --script NOTEBOOK", "With `-o`, `file` replaces `source`.", report.Script{Source: "package main\n"}},
	{"submit --dry-run NOTEBOOK, submit preflight --dry-run", "`script` is the batch script.",
		report.Preview{Scheduler: "slurm", Name: "mnist", Nodes: 2, Ranks: 8, Script: "#!/bin/bash\n#SBATCH --job-name=mnist\n"}},
	{"submit logs RUN, submit logs -f RUN", "There is one object for each line of the log. The exit code of `submit logs -f` is the job's, and `submit status` says how it ended.",
		report.Line{Rank: 0, Line: "epoch 1/3  step 937/2811  loss 0.2113"}},
	{"submit kernel install, submit kernel uninstall", "`state` is `installed` or `removed`, and `folder` is the kernelspec's.",
		report.Kernel{State: "installed", Folder: "/home/ada/.local/share/jupyter/kernels/gonbatch"}},
	{"submit kernel doctor", "`ok` says whether the kernel can run: only `optional` findings may have a `problem`. If it can't, the exit code is 1.",
		report.Doctor{OK: true, Findings: []report.Finding{{Name: "Go", Found: "/usr/local/go/bin/go, go1.26.4 linux/amd64"}, {Name: "XLA plugin", Optional: true, Problem: "not found: the first cell that needs it installs it, and so does submit"}}}},
	{"submit kernel warm", "`packages` lists the packages that notebooks import, which are now compiled.", report.Packages{Packages: []string{"gonbatch/trainer"}}},
	{"%result", "A cell with `%result` keeps this object in the notebook, under the MIME type `application/vnd.gonbatch.result+json`. `state` is as above. " +
		"`losses` holds pairs of a step and a value. In `metrics`, NaN and the infinities are strings.", report.Result{
		Job: "4711", Run: "mnist-20261121-101500-4f2a", State: "completed", Message: "completed", Directory: "/home/ada/runs/mnist-20261121-101500-4f2a", Step: 937,
		Metrics: map[string]any{"train/loss": 0.25}, Losses: map[string][][2]float64{"train/loss": {{500, 0.5}, {937, 0.25}}},
		Checkpoints: []string{"/home/ada/runs/mnist-20261121-101500-4f2a/checkpoints/train/step-00000937"}, Images: []string{},
	}},
	{"submit prune", "`removed` says whether the runs were removed, with `--yes`; `kept` says why a run stays.",
		report.Pruned{Runs: []report.PrunedRun{{Run: failed.Run, Directory: failed.Directory, State: "failed", Bytes: 1 << 20, Kept: "it has the only checkpoint of mnist"}}}},
	{"submit compare", "Each row has a cell, as text, for each column; it is empty where a run lacks it.",
		report.Comparison{Columns: []string{"run", "-p lr", "val/loss", "state", "time"}, Rows: [][]string{{failed.Run, "0.1", "0.25", "completed", "1m2s"}}}},
	{"submit --sweep NAME=VALUES NOTEBOOK", "`sweep` is the name that stands for all of the runs in `submit list --sweep`, `compare`, `resume` and `cancel`.",
		report.Sweep{Sweep: "mnist-sweep-20261121-101500-4f2a", Runs: []report.SweepRun{{Settings: "lr=1e-3 seed=1", Run: failed.Run, Directory: failed.Directory, Job: "4711"}}}},
	{"submit top", "`step` is the newest with metrics. `metric` is the loss of the training, or another one, and `values` are its newest values, the newest last.",
		report.Top{Runs: []report.TopRun{{Run: failed.Run, Directory: failed.Directory, Job: "4711", State: "running", Message: "running on n1", Step: 937, Metric: "train/loss", Values: []float64{0.5, 0.25}}}}},
	{"submit open RUN", "Nothing is opened: `notebook` is the path of the executed notebook.", report.Executed{Run: failed.Run, Notebook: failed.Directory + "/executed.ipynb"}},
	{"submit scaling SWEEP", "`speedup` is relative to the first run, and `efficiency` is that divided by how many times more ranks the run has; 0 if a speed isn't known.",
		report.Scaling{Sweep: "mnist-sweep-20261121-101500-4f2a", Runs: []report.ScalingRun{{Run: failed.Run, Nodes: 2, Ranks: 2, State: "completed", ExamplesPerSecond: 19000, Speedup: 1.9, Efficiency: 0.95, DataWait: 0.01}}}},
	{"submit nodes", "`kinds` groups the nodes of a partition by their hardware: CPUs, memory in MB and GPUs are those of one node. Free CPUs and GPUs are those of all nodes together, and free memory is the most that one node has. `down` counts the nodes that take no jobs.",
		report.Nodes{
			Partitions: []report.Partition{{Name: "gpu", Default: true, Up: true, MaxTime: "1-00:00:00", Kinds: []report.NodeKind{{
				Nodes: 4, Idle: 1, Down: 1, CPUs: 64, FreeCPUs: 96, Memory: 512000, FreeMemory: 512000, GPUs: map[string]int{"a100": 4}, FreeGPUs: map[string]int{"a100": 5}, Features: []string{"ib"},
			}}}},
			Jobs: []report.Usage{{State: "running", Jobs: 1, Nodes: 1, CPUs: 32}}, Limits: []string{"Account=physics MaxJobs=10"},
		}},
	{"submit version", "", report.Program{Submit: "v1.0.0", Go: "go1.26"}},
}

// TestPage checks that docs/json.md describes the shapes.
func TestPage(t *testing.T) {
	var text strings.Builder
	for _, s := range shapes {
		var line, spread bytes.Buffer
		if err := report.Write(&line, true, s.example); err != nil {
			t.Fatal(err)
		}
		if strings.Count(line.String(), "\n") != 1 {
			t.Errorf("%s: not one line: %s", s.command, &line)
		}
		if err := json.Indent(&spread, bytes.TrimSpace(line.Bytes()), "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "## %s\n\n", s.command)
		if s.about != "" {
			fmt.Fprintf(&text, "%s\n\n", wrap(s.about))
		}
		fmt.Fprintf(&text, "```json\n%s\n```\n\n", &spread)
	}
	page.Section(t, "docs/json.md", "shapes", text.String())
}

// wrap breaks a paragraph into lines of 100 columns at most.
func wrap(text string) string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= 100:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}
