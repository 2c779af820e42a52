package cluster

// detectSlurm reads what srun sets: https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES.
// A batch script has SLURM_PROCID and SLURM_NTASKS too, but no SLURM_STEP_ID: a program started in it without srun is alone.
func detectSlurm(r *reader) (Environment, bool) {
	if !r.has("SLURM_PROCID") || !r.has("SLURM_STEP_ID") {
		return Environment{}, false
	}
	return Environment{
		Rank:      r.number(0, "SLURM_PROCID"),
		Size:      r.number(1, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
		LocalRank: r.number(0, "SLURM_LOCALID"),
	}, true
}
