package slurm

import (
	"strings"

	"gonbatch/submit"
)

// states maps SLURM's states, as scontrol and squeue print them, to ours.
var states = map[string]submit.State{
	"BOOT_FAIL":     submit.NodeFailed,
	"CANCELLED":     submit.Cancelled,
	"COMPLETED":     submit.Completed,
	"COMPLETING":    submit.Running,
	"CONFIGURING":   submit.Pending,
	"DEADLINE":      submit.TimedOut,
	"FAILED":        submit.Failed,
	"NODE_FAIL":     submit.NodeFailed,
	"OUT_OF_MEMORY": submit.OutOfMemory,
	"PENDING":       submit.Pending,
	"PREEMPTED":     submit.Preempted,
	"REQUEUED":      submit.Pending,
	"REQUEUE_FED":   submit.Pending,
	"REQUEUE_HOLD":  submit.Pending,
	"RESIZING":      submit.Running,
	"REVOKED":       submit.Cancelled,
	"RUNNING":       submit.Running,
	"SIGNALING":     submit.Running,
	"SPECIAL_EXIT":  submit.Pending,
	"STAGE_OUT":     submit.Running,
	"STOPPED":       submit.Suspended,
	"SUSPENDED":     submit.Suspended,
	"TIMEOUT":       submit.TimedOut,
}

// parseState converts SLURM's name of a state; "CANCELLED+" and "CANCELLED by 1000" are CANCELLED
// too.
func parseState(raw string) submit.State {
	word, _, _ := strings.Cut(raw, " ")
	return states[strings.TrimRight(word, "+")]
}
