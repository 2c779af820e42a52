package cluster

import (
	"net"
	"strconv"
)

// defaultMasterPort is torchrun's.
const defaultMasterPort = 29500

// detectTorchrun reads the variables of torchrun, which other launchers set as well:
// https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
func detectTorchrun(r *reader) (Environment, bool) {
	if !r.has("RANK") || !r.has("WORLD_SIZE") {
		return Environment{}, false
	}
	host := r.getenv("MASTER_ADDR")
	if host == "" {
		host = "localhost"
	}
	port := r.number(defaultMasterPort, "MASTER_PORT")
	if r.getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		port++ // torchrun itself listens at the port that it names, for PyTorch's own store.
	}
	return Environment{
		RunID:     r.getenv("TORCHELASTIC_RUN_ID"),
		Master:    net.JoinHostPort(host, strconv.Itoa(port)),
		Rank:      r.number(0, "RANK"),
		Size:      r.number(1, "WORLD_SIZE"),
		LocalRank: r.number(0, "LOCAL_RANK"),
		LocalSize: r.number(0, "LOCAL_WORLD_SIZE"),
	}, true
}
