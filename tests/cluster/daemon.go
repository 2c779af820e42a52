package cluster

import (
	"fmt"
	"os"
)

// KillDaemon kills only slurmd on a node: SLURM considers the node dead, while its jobs keep
// running.
func (c *Cluster) KillDaemon(node string) error {
	if _, err := c.On(node, "pkill", "-KILL", "-x", "slurmd"); err != nil {
		return fmt.Errorf("kill slurmd on %s: %w", node, err)
	}
	return nil
}

// StartDaemon starts slurmd again after KillDaemon.
func (c *Cluster) StartDaemon(node string) error {
	if _, err := c.On(node, "slurmd"); err != nil {
		return fmt.Errorf("start slurmd on %s: %w", node, err)
	}
	return nil
}

// StopController stops slurmctld: jobs keep running, but SLURM commands get no answer.
func (c *Cluster) StopController() error {
	const stop = `pid=$(cat "$0/slurmctld.pid") && kill "$pid" && while kill -0 "$pid" 2> /dev/null; do sleep 0.05; done`
	if _, err := c.Run("bash", "-c", stop, c.Dir); err != nil {
		return fmt.Errorf("stop slurmctld: %w", err)
	}
	return nil
}

// StartController starts slurmctld again after StopController.
func (c *Cluster) StartController() error {
	// The output goes to a file: the daemon would keep a pipe open.
	if _, err := c.Run("bash", "-c", `slurmctld > "$0" 2>&1`, c.file("slurmctld.out")); err != nil {
		return fmt.Errorf("start slurmctld: %w", err)
	}
	return nil
}

// ForgetJobs starts the controller, after StopController, without the jobs that it knew: it reuses
// their IDs.
func (c *Cluster) ForgetJobs() error {
	if err := os.RemoveAll(c.file("ctld")); err != nil {
		return err
	}
	if err := os.Mkdir(c.file("ctld"), 0o755); err != nil {
		return err
	}
	return c.StartController()
}
