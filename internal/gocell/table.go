package gocell

const (
	moduleFixed = "has no effect in a job: submit finds the modules"
	interactive = "is for interactive use only"
)

// Magics is the table of all magics: those of GoNB 0.11, and the kernel's own.
var Magics = []Magic{
	// The program of a cell.
	{Name: "%%", Usage: "%% [ARGUMENTS]", Runner: GoNB, InJob: Applies,
		Help: "Use the lines below as the body of main. ARGUMENTS are passed to the program."},
	{Name: "%main", Usage: "%main [ARGUMENTS]", Runner: GoNB, InJob: Applies, Help: "The same as %%."},
	{Name: "%args", Usage: "%args ARGUMENTS", Runner: GoNB, InJob: Applies,
		Help: "Set the arguments of the next program."},
	{Name: Exec, Usage: "%exec FUNCTION [ARGUMENTS]", Runner: GoNB, InJob: Applies,
		Help: "Make a main that calls FUNCTION."},
	{Name: Test, Usage: "%test [ARGUMENTS]", Runner: GoNB, InJob: Applies,
		Help: "Run the tests and benchmarks of the cell; in a job, once, on the first node."},
	{Name: Wasm, Usage: "%wasm", Runner: GoNB, InJob: Refused,
		Why:  "runs the cell in a browser, and a job has none; tag the cell notebook-only",
		Help: "Compile the cell to WebAssembly and run it in the browser."},

	// Its environment.
	{Name: Env, Usage: "%env NAME VALUE", Runner: GoNB, InJob: Applies, Help: "Set an environment variable."},
	{Name: "%cd", Usage: "%cd [FOLDER]", Runner: GoNB, ASCII: true, InJob: Applies, Help: "Change the working folder, or print it."},
	{Name: Flags, Usage: "%goflags [FLAGS]", Runner: GoNB, ASCII: true, InJob: Applies,
		Help: "Set the flags of go build, or print them."},
	{Name: "%capture", Usage: "%capture [-a] FILE", Runner: GoNB, ASCII: true, InJob: Applies, Words: []string{"-a"},
		Help: "Copy the output of the cell's program to FILE; in a job, that of rank 0. -a appends."},
	{Name: "%with_inputs", Usage: "%with_inputs", Runner: Kernel, InJob: Refused, Why: waitsForInput,
		Help: "Let the next shell command read what you type. This kernel always does."},
	{Name: "%with_password", Usage: "%with_password", Runner: Kernel, InJob: Refused, Why: waitsForInput,
		Help: "Hide what you type for the next shell command."},

	// State.
	{Name: Reset, Usage: "%reset [go.mod]", Runner: GoNB, InJob: Applies, Words: []string{"go.mod"},
		Help: "Forget all declarations and the changes to go.mod; with go.mod, only those changes."},
	{Name: RemoveShort, Usage: "%rm NAMES", Runner: GoNB, ASCII: true, InJob: Applies, Help: "Forget declarations."},
	{Name: Remove, Usage: "%remove NAMES", Runner: GoNB, ASCII: true, InJob: Applies, Help: "The same as %rm."},
	{Name: "%ls", Usage: "%ls", Runner: GoNB, InJob: Ignored, Why: interactive, Help: "List what the cells have declared."},
	{Name: "%list", Usage: "%list", Runner: GoNB, InJob: Ignored, Why: interactive, Help: "The same as %ls."},
	{Name: "%who", Usage: "%who", Runner: Kernel, InJob: Ignored, Why: interactive,
		Help: "List what the cells have declared."},
	{Name: Keep, Usage: "%keep x, y", Runner: Kernel, InJob: Applies, Words: []string{"-d"},
		Help: "Keep the values of package-level variables for later cells. %keep -d x stops keeping x; %keep lists what is kept."},

	// Modules.
	{Name: "%autoget", Usage: "%autoget", Runner: GoNB, InJob: Ignored, Why: moduleFixed,
		Help: "Get packages that are missing. This is the default."},
	{Name: "%noautoget", Usage: "%noautoget", Runner: GoNB, InJob: Ignored, Why: moduleFixed,
		Help: "Don't get packages that are missing."},
	{Name: "%track", Usage: "%track [PATH]", Runner: GoNB, ASCII: true, InJob: Ignored, Why: interactive,
		Help: "Watch Go files for completion, or list those that are watched."},
	{Name: "%untrack", Usage: "%untrack [PATH]", Runner: GoNB, ASCII: true, InJob: Ignored, Why: interactive, Help: "Stop watching Go files."},
	{Name: "%goworkfix", Usage: "%goworkfix", Runner: GoNB, InJob: Ignored,
		Why:  "isn't needed in a job, where !*go work use replaces the modules",
		Help: "Replace the modules of go.work in go.mod too."},

	// Shell commands, and cells that are not Go.
	{Name: Shell, Usage: "!COMMAND", Runner: Kernel, InJob: Once,
		Help: "Run a shell command. If it fails, so does the cell."},
	{Name: ShellInModule, Usage: "!*COMMAND", Runner: Kernel, InJob: Applies,
		Help: "Run a shell command in the folder of the cells' module. In a job, only go get, go mod and go work have an effect."},
	{Name: AllowFail, Usage: "%allow_fail", Runner: Kernel, InJob: Applies,
		Help: "Let the shell commands of this cell fail without failing the cell."},
	{Name: Bash, Usage: "%%bash", Runner: Kernel, WholeCell: true, InJob: Once, Help: "Run the cell with bash."},
	{Name: Sh, Usage: "%%sh", Runner: Kernel, WholeCell: true, InJob: Once, Help: "Run the cell with sh."},
	{Name: Script, Usage: "%%script COMMAND [ARGUMENTS]", Runner: Kernel, WholeCell: true, InJob: Once,
		Help: "Run COMMAND with the cell as its input."},
	{Name: WriteFile, Usage: "%%writefile [-a] FILE", Runner: GoNB, ASCII: true, WholeCell: true, InJob: Once, Words: []string{"-a"},
		Help: "Write the cell to FILE. -a appends."},
	{Name: "%%gx", Usage: "%%gx", Runner: GoNB, WholeCell: true, InJob: LeftOut, Why: "is not run on the cluster",
		Help: "Run the cell as GX, if GoNB is built with it."},

	// Time and ranks.
	{Name: "%time", Usage: "%time", Runner: Kernel, InJob: Ignored, Why: interactive,
		Help: "Show how long the cell takes, and where the time goes."},
	{Name: "%timeit", Usage: "%timeit EXPRESSION", Runner: Kernel, InJob: Ignored, Why: interactive,
		Help: "Measure how long an expression takes, averaged over many calls."},
	{Name: "%distributed", Usage: "%distributed N", Runner: Kernel, InJob: Ignored,
		Why:  "is a rehearsal; a job has its own ranks",
		Help: "Run the next program as N ranks on this machine, to try it before submitting."},
	{Name: "%devices", Usage: "%devices", Runner: Kernel, InJob: Ignored, Why: interactive,
		Help: "List the devices that XLA sees."},

	// Jobs.
	{Name: "%submit", Usage: "%submit [FLAGS] [-- PROGRAM FLAGS]", Runner: Submit, InJob: Ignored, Why: interactive,
		Words: []string{"--saved"}, SubmitFlags: true,
		Help: "Submit this notebook as a job: every cell that ran in this session without an error, in order, as it was when it " +
			"last ran, with its tags from the last saved notebook. The flags are those of the submit command (%submit --help). " +
			"A card below the cell shows the job's progress. It warns about declarations that an edit removed and that only the session still has. --saved submits the notebook as it was last saved instead."},
	{Name: SubmitCell, Usage: "%%submit [FLAGS]", Runner: Submit, WholeCell: true, InJob: LeftOut, SubmitFlags: true,
		Why:  "submits its cell as a separate job",
		Help: "Submit the rest of this cell as a job: the job's only program, with the declarations of this session."},
	{Name: "%jobs", Usage: "%jobs", Runner: Submit, InJob: Ignored, Why: interactive,
		Help: "List all runs, newest last."},
	{Name: "%logs", Usage: "%logs [--rank N] [RUN]", Runner: Submit, InJob: Ignored, Why: interactive, Words: []string{"--rank"},
		Help: "Print a rank's log. RUN is a job id, a run's name or the beginning of one; the default is the run of the last %submit."},
	{Name: "%wait", Usage: "%wait [RUN]", Runner: Submit, InJob: Ignored, Why: interactive,
		Help: "Wait until a job ends. The cell fails if the job failed. The default is the run of the last %submit."},
	{Name: "%cancel", Usage: "%cancel [RUN]", Runner: Submit, InJob: Ignored, Why: interactive,
		Help: "Cancel a job. The default is the run of the last %submit."},
	{Name: Result, Usage: "%result [RUN] [as NAME]", Runner: Submit, InJob: Applies, Words: []string{"as"},
		Help: "Show the results of a run, also as JSON: its state, its metrics by name, its checkpoints and images. " +
			"\"as run\" declares them for the next cells as a Go value: run.Last(\"val/loss\"), run.Series(\"train/loss\"), " +
			"run.Metrics(), run.Checkpoints(), run.Images() (package gonbatch/submit/result). A job does not have this value: " +
			"%submit leaves out the cells that use it; if you submit a notebook file, tag them notebook-only. " +
			"The default is the run of the last %submit."},

	// The kernel itself.
	{Name: Help, Usage: "%help", Runner: GoNB, InJob: Ignored, Why: interactive, Help: "Show help for all magics."},
	{Name: "%version", Usage: "%version", Runner: GoNB, InJob: Ignored, Why: interactive, Help: "Print the version of GoNB."},
	{Name: "%widgets", Usage: "%widgets", Runner: GoNB, InJob: Ignored, Why: interactive, Help: "Connect GoNB's widgets to the browser."},
	{Name: "%widgets_hb", Usage: "%widgets_hb", Runner: GoNB, InJob: Ignored, Why: interactive, Help: "Test that connection."},
}

const waitsForInput = "waits for typed input, which a job does not have; pipe the input into the command, or tag the cell notebook-only"
