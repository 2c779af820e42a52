package cluster

import (
	"cmp"
	"strconv"
	"strings"
)

const (
	// torchrunID holds torchrun's name for the job. No other launcher sets it.
	torchrunID = "TORCHELASTIC_RUN_ID"
	// submitID begins the name of a job that submit starts, in torchrun's variable.
	submitID = "gonbatch-submit:"
	// defaultMasterPort is torchrun's default.
	defaultMasterPort = 29500
)

// readTorchrun reads torchrun's variables, which other launchers set as well:
// https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
func readTorchrun(r *reader) Environment {
	port := r.number(defaultMasterPort, "MASTER_PORT")
	if r.getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		port++ // torchrun itself listens on the port that it names, for PyTorch's own store.
	}
	host := cmp.Or(r.getenv("MASTER_ADDR"), "localhost")
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return Environment{
		RunID:     r.getenv(torchrunID),
		Master:    host + ":" + strconv.Itoa(port),
		Size:      r.number(1, "WORLD_SIZE"),
		LocalRank: r.number(0, "LOCAL_RANK"),
		LocalSize: r.number(0, "LOCAL_WORLD_SIZE"),
	}
}

// nameSubmit names submit as the launcher if it has set torchrun's variables.
func (e *Environment) nameSubmit() {
	if id, ok := strings.CutPrefix(e.RunID, submitID); ok && e.Launcher == Torchrun {
		e.Launcher, e.RunID = Submit, id
	}
}

// TorchrunVariables returns the variables that torchrun sets, as NAME=VALUE, for a rank of size on
// this machine that submit starts. Rank 0 listens on the port. The id is the job's.
func TorchrunVariables(rank, size, port int, id string) []string {
	own, all := strconv.Itoa(rank), strconv.Itoa(size)
	return []string{
		"RANK=" + own, "LOCAL_RANK=" + own, "WORLD_SIZE=" + all, "LOCAL_WORLD_SIZE=" + all,
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + strconv.Itoa(port), torchrunID + "=" + submitID + id,
	}
}
