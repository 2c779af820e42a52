package cluster

import "fmt"

// KillDaemon kills slurmd on a node, and nothing else: SLURM takes the node for dead, while its jobs go on.
func (c *Cluster) KillDaemon(node string) error {
	if _, err := c.On(node, "pkill", "-KILL", "-x", "slurmd"); err != nil {
		return fmt.Errorf("kill slurmd on %s: %w", node, err)
	}
	return nil
}

// StartDaemon starts slurmd again after a KillDaemon.
func (c *Cluster) StartDaemon(node string) error {
	if _, err := c.On(node, "slurmd"); err != nil {
		return fmt.Errorf("start slurmd on %s: %w", node, err)
	}
	return nil
}
