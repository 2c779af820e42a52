package cluster

import "net"

// defaultMasterPort is torchrun's.
const defaultMasterPort = "29500"

// detectTorchrun reads the variables of torchrun, which other launchers set as well:
// https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
func detectTorchrun(r *reader) (Environment, bool) {
	if !r.has("RANK") || !r.has("WORLD_SIZE") {
		return Environment{}, false
	}
	host, port := r.getenv("MASTER_ADDR"), r.getenv("MASTER_PORT")
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = defaultMasterPort
	}
	return Environment{
		Master:    net.JoinHostPort(host, port),
		Rank:      r.number(0, "RANK"),
		Size:      r.number(1, "WORLD_SIZE"),
		LocalRank: r.number(0, "LOCAL_RANK"),
		LocalSize: r.number(0, "LOCAL_WORLD_SIZE"),
	}, true
}
