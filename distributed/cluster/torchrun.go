package cluster

// detectTorchrun reads the variables of torchrun, which other launchers set as well:
// https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables
func detectTorchrun(r *reader) (Environment, bool) {
	if !r.has("RANK") || !r.has("WORLD_SIZE") {
		return Environment{}, false
	}
	return Environment{
		Rank:      r.number(0, "RANK"),
		Size:      r.number(1, "WORLD_SIZE"),
		LocalRank: r.number(0, "LOCAL_RANK"),
		LocalSize: r.number(0, "LOCAL_WORLD_SIZE"),
	}, true
}
