package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/run"
)

// submission makes a request of the runs: it submits a notebook, or the preflight's own.
type submission func(runs *run.Runs, ctx context.Context, req run.Request) error

// submit turns cmd's flags into a request, and makes it. The project's configuration file is found
// upward from start.
func (o *submitOptions) submit(cmd *cobra.Command, a *app, start string, do submission) error {
	cfg, err := a.loadConfig(cmd, start)
	if err != nil {
		return err
	}
	req, err := o.request(a, cfg)
	if err != nil {
		return cfg.Explain(err)
	}
	return cfg.Explain(do(a.runs(cmd, o.RunRoot), cmd.Context(), req))
}

const preflightLong = `preflight runs a job of a few seconds with the options that your training will have. It prints the
host, CPUs, device and MPI of each rank, and runs one all-reduce inside a compiled program. It
succeeds if all ranks work together.

With --gpu-check, the job then checks gonbatch on the GPUs of its node for some minutes, and prints
a table of the results (docs/gpu.md). Arguments after -- are those of the check.`

func newPreflightCommand(a *app) *cobra.Command {
	opts := newSubmitOptions()
	cmd := &cobra.Command{
		Use:   "preflight [flags]",
		Short: "Check in seconds that the ranks of a job work together",
		Long:  preflightLong,
		Example: `  submit preflight --nodes 2 --tasks-per-node 4
  submit preflight --local --tasks 2
  submit preflight --gpu-check --gpus-per-node 1`,
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if err := opts.takeKit(args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return opts.submit(cmd, a, ".", (*run.Runs).Preflight)
		}),
	}
	opts.addFlags(cmd.Flags())
	opts.addKitFlag(cmd.Flags())
	return cmd
}

// gpuKit is where scripts/gpu-kit.sh makes the kit, in a checkout of gonbatch.
const gpuKit = "bin/gpu-kit"

func (o *submitOptions) addKitFlag(fs *pflag.FlagSet) {
	config.NonEmpty(fs, &o.Kit.Folder, "folder", "gpu-check", "", "", "then check gonbatch on the node's GPUs, with the kit in this folder ("+gpuKit+" if none is given)")
	fs.Lookup("gpu-check").NoOptDefVal = gpuKit
	config.Mark(fs, config.FlagOnly, "gpu-check")
}

// takeKit takes the arguments of the check, which begin at position dash (-1 if there are none).
func (o *submitOptions) takeKit(args []string, dash int) error {
	switch {
	case dash > 0 || dash < 0 && len(args) > 0:
		return submit.Usagef("preflight takes no notebook, but %q was given; a folder of --gpu-check follows a =", args[0])
	case len(args) > 0 && o.Kit.Folder == "":
		return submit.Usagef("arguments after --, %q, are those of the check of GPUs: add --gpu-check", args)
	}
	o.Kit.Args = args
	return nil
}
