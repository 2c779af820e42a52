package slurmtmpl

import (
	"cmp"
	"fmt"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"gonbatch/internal/cluster"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Data is a template's data: the job's own fields, and values derived from them.
type Data struct {
	submit.JobSpec
	// Var holds the names of the variables that the script sets and the programs read.
	Var any
	// OtherPrefixes and OtherNames are the variables with which other launchers number their ranks.
	OtherPrefixes, OtherNames []string
	// Directives are the #SBATCH options, quoted and sorted.
	Directives []string
	// OwnEnv is gonbatch's part of every cell's environment, UserEnv the user's, sorted by name.
	OwnEnv, UserEnv []rundir.Var
	// Cells are the programs, in order.
	Cells []Launch
	// RequeueCode is the exit code of a program that has saved and asks for a restart. Unasked is
	// the message if nobody told it to stop.
	RequeueCode int
	Unasked     string
	// CheckpointFile is a file that every checkpoint's folder has.
	CheckpointFile string
	// Resume is the command that resumes the run.
	Resume string
}

// Launch is a cell of the job, and how srun starts it.
type Launch struct {
	rundir.Cell
	// Title is a line for the log.
	Title string
	// Env are the cell's own environment variables.
	Env []rundir.Var
	// Srun are srun's options.
	Srun []string
	// Command is what srun starts: the program and its arguments, preceded by the rank script if
	// the job is recorded.
	Command []string
}

// newData returns the template's data for spec, whose MPI kind must be decided.
func newData(spec submit.JobSpec) (Data, error) {
	if strings.ContainsRune(spec.RunDir.Path(), '\\') {
		return Data{}, fmt.Errorf("--run-root=%q: has a backslash, which SLURM drops from the paths of logs; choose another folder", spec.RunDir.Path())
	}
	directives, err := directives(spec)
	if err != nil {
		return Data{}, err
	}
	data := Data{
		JobSpec:        spec,
		Var:            rundir.Names,
		OtherPrefixes:  cluster.Prefixes,
		OtherNames:     cluster.Names,
		Directives:     directives,
		OwnEnv:         spec.RankEnv("1").Vars(),
		UserEnv:        rundir.SortedVars(spec.Env),
		RequeueCode:    rundir.RequeueCode,
		Unasked:        rundir.Unasked,
		CheckpointFile: rundir.CheckpointFile,
		Resume:         submit.ResumeCommand(spec.RunDir),
	}
	for _, cell := range spec.Cells {
		data.Cells = append(data.Cells, newLaunch(spec, cell))
	}
	return data, nil
}

// newLaunch returns how srun starts a cell.
func newLaunch(spec submit.JobSpec, cell rundir.Cell) Launch {
	s := Launch{
		Cell:    cell,
		Env:     rundir.SortedVars(cell.Env),
		Srun:    srunOptions(spec, cell),
		Command: spec.Command(cell),
	}
	where := "on " + plural.Of(spec.Tasks(), "rank")
	if cell.Once {
		where = "once, on the first node"
	}
	s.Title = fmt.Sprintf("%s %s: %s", CellTitle(cell.Name), where, shellescape.QuoteCommand(append([]string{spec.RunDir.CellProgram(cell)}, spec.CellArgs(cell)...)))
	return s
}

// CellTitle returns the beginning of the line that the script writes to its log before a cell.
func CellTitle(cell string) string { return "gonbatch: cell " + cell }

// exportAll gives the cells the script's environment, whatever "sbatch --export" gave the job.
const exportAll = "--export=ALL"

func srunOptions(spec submit.JobSpec, cell rundir.Cell) []string {
	options := append(rankOptions(spec), exportAll)
	logs := rankLogs(spec.RunDir)
	if cell.Once {
		options = []string{"--nodes=1", "--relative=0", "--ntasks=1", "--ntasks-per-node=1", "--mpi=none", "--input=none", exportAll}
		logs = rundir.At(escapePattern(spec.RunDir.Path())).RankLog(0)
	}
	if spec.CPUsPerTask > 0 {
		options = append(options, fmt.Sprintf("--cpus-per-task=%d", spec.CPUsPerTask))
	}
	if dir := cmp.Or(cell.Dir, spec.WorkDir); dir != "" {
		options = append(options, "--chdir="+dir)
	}
	return append(options, "--open-mode=append", "--output="+logs)
}

// rankOptions returns srun's options that start one process for each rank.
func rankOptions(spec submit.JobSpec) []string {
	return []string{
		fmt.Sprintf("--nodes=%d", spec.Nodes),
		fmt.Sprintf("--ntasks=%d", spec.Tasks()),
		fmt.Sprintf("--ntasks-per-node=%d", spec.TasksPerNode),
		"--mpi=" + cmp.Or(spec.MPI, "none"),
		"--kill-on-bad-exit=1",
	}
}

// rankLogs returns SLURM's pattern for the logs of all ranks. It doubles each "%" that is not a
// placeholder.
func rankLogs(dir rundir.Dir) string {
	return rundir.At(escapePattern(dir.Path())).RankLogPattern("%t")
}

func escapePattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }
