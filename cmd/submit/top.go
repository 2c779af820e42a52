package main

import (
	"bytes"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

// topPause is the time between two pictures; they may take a fifth of the time at most.
const topPause = 2 * time.Second

// clearScreen moves a terminal's cursor to its top, and clears what is below.
const clearScreen = "\x1b[H\x1b[J"

func newTopCommand(a *app) *cobra.Command {
	everywhere := false
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the runs that have not ended",
		Long: `top shows the runs that have not ended: their steps, losses and states, again every few seconds
until Ctrl-C. If the output is no terminal, or with --json, it shows them once.`,
		Example: "  submit top --everywhere",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&everywhere, "everywhere", false, "also show runs in the other folders in which you have submitted")
	addRunRoot(cmd)
	asJSON := addJSON(cmd)
	cmd.RunE = interruptible(func(cmd *cobra.Command, _ []string) error {
		root, err := a.runRoot(cmd)
		if err != nil {
			return err
		}
		runs, watch := a.runs(cmd, root), &run.Watch{}
		once := *asJSON || !term.IsTerminal(int(os.Stdout.Fd()))
		for {
			began := time.Now()
			top, err := runs.Top(cmd.Context(), watch, everywhere)
			if err != nil && cmd.Context().Err() == nil {
				return err
			}
			if once {
				return report.Write(a.Out, *asJSON, top)
			}
			var screen bytes.Buffer
			screen.WriteString(clearScreen)
			_ = top.Text(&screen) // A Buffer takes everything.
			if _, err := a.Out.Write(screen.Bytes()); err != nil {
				return err
			}
			select {
			case <-cmd.Context().Done():
				return nil
			case <-time.After(max(topPause, 4*time.Since(began))):
			}
		}
	})
	return cmd
}
