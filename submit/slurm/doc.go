// Package slurm submits jobs to SLURM through its own commands: sbatch, scontrol, scancel and srun.
// It needs no accounting database: for a job that SLURM has forgotten, the files in its run
// directory show the state.
//
//	scheduler := slurm.New(shell)
//	job, err := scheduler.Submit(ctx, spec) // spec.RunDir has the script
//	status, err := scheduler.Status(ctx, job)
package slurm
