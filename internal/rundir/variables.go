package rundir

// The variables that a launcher sets for the ranks of a job. Env encodes and decodes most of them.
const (
	// EnvDir is the path of the run directory. Every process of a run has it.
	EnvDir = "GONBATCH_RUN_DIR"
	// EnvCell is the name of the running cell.
	EnvCell = "GONBATCH_CELL"
	// EnvDevices is the number of XLA devices that one process drives, or "all".
	EnvDevices = "GONBATCH_DEVICES"
	// EnvPlatform is XLA's platform: "cpu" or "cuda".
	EnvPlatform = "GONBATCH_PLATFORM"
	// EnvPluginDir is the folder of XLA's plugin.
	EnvPluginDir = "GONBATCH_PLUGIN_DIR"
	// EnvXLAPath and EnvXLANoInstall are go-xla's own variables: the folders of its plugins, and
	// that it must not install any. With them, a program that does not import gonbatch finds XLA.
	EnvXLAPath      = "PJRT_PLUGIN_LIBRARY_PATH"
	EnvXLANoInstall = "GOMLX_NO_AUTO_INSTALL"
	// EnvNotebookDir is GoNB's own variable: the folder in which the kernel runs cells.
	EnvNotebookDir = "GONB_DIR"
	// EnvMPILibrary is the path or the soname of the MPI library to open.
	EnvMPILibrary = "GONBATCH_MPI_LIBRARY"
	// EnvOneDNN is the path or the soname of the oneDNN library to open, or OneDNNOff.
	EnvOneDNN = "GONBATCH_ONEDNN"
	// EnvOverlap is OverlapOn or OverlapOff: whether gradients travel while others are computed, on
	// CPUs.
	EnvOverlap = "GONBATCH_OVERLAP"
	// EnvData is the folder of downloaded datasets.
	EnvData = "GONBATCH_DATA"
	// EnvCompileCache is the folder of compiled XLA programs, or "off".
	EnvCompileCache = "GONBATCH_COMPILE_CACHE"
	// EnvForecast names a file with a question: what does a training step take on GPUs? The program
	// writes its answer to the file and ends before that step.
	EnvForecast = "GONBATCH_FORECAST"
	// EnvStuckTimeout is how long ranks may wait for another rank before it counts as stuck.
	EnvStuckTimeout = "GONBATCH_STUCK_TIMEOUT"
	// EnvRendezvousKey is a secret of the ranks of a job, which meet over TCP without MPI.
	EnvRendezvousKey = "GONBATCH_RENDEZVOUS_KEY"
	// EnvRequeue is RequeueCode, if a program may end with it to be started again.
	EnvRequeue = "GONBATCH_REQUEUE"
	// EnvRestarts is the number of the restart: 0 in the first start.
	EnvRestarts = "GONBATCH_RESTARTS"
	// EnvStopped is the file Dir.Stopped of this start.
	EnvStopped = "GONBATCH_STOPPED"
	// EnvResult is the file for the value of a cell's last expression, in formats other than text.
	// Only a program whose output is recorded has it.
	EnvResult = "GONBATCH_RESULT"
	// EnvRecorder is the socket of the process that writes executed.ipynb.
	EnvRecorder = "GONBATCH_RECORDER"
	// EnvParameters holds the values of the parameters that the runs of a sweep get when they
	// start, as a JSON object.
	EnvParameters = "GONBATCH_PARAMETERS"
	// EnvEvent and EnvEventText are what a command of --notify is told, in a word and in a line.
	EnvEvent     = "GONBATCH_EVENT"
	EnvEventText = "GONBATCH_TEXT"
	// EnvUserPrefix begins the names under which a launcher passes the user's variables to the
	// ranks.
	EnvUserPrefix = "GONBATCH_ENV_"
)

// OneDNNOff is the value of EnvOneDNN that makes XLA compute everything.
const OneDNNOff = "off"

// The values of EnvOverlap.
const (
	OverlapOn  = "on"
	OverlapOff = "off"
)

// The variables of a user's machine, and of a notebook's session on it.
const (
	// EnvSource is a checkout of gonbatch to use instead of the embedded source.
	EnvSource = "GONBATCH_SOURCE"
	// EnvTools is the folder of the kernel's programs, EnvGo the go command. The kernelspec sets
	// both.
	EnvTools = "GONBATCH_TOOLS"
	EnvGo    = "GONBATCH_GO"
	// EnvVerbose, set to anything, makes the kernel log everything that GoNB and gopls write.
	EnvVerbose = "GONBATCH_VERBOSE"
	// EnvCheckpoints is the folder for the checkpoints of a program that is not in a run and
	// doesn't name a folder.
	EnvCheckpoints = "GONBATCH_CHECKPOINTS"
	// EnvCellDir is the folder in which the kernel looks for what a cell shows besides its output.
	EnvCellDir = "GONBATCH_CELL_DIR"
	// EnvKeepDir is the folder with the kept values of a session. Those of a job are in its run
	// directory.
	EnvKeepDir = "GONBATCH_KEEP_DIR"
	// EnvKeepErrors is the file for the reason why a value can't be kept. If it is unset, such an
	// error ends the program.
	EnvKeepErrors = "GONBATCH_KEEP_ERRORS"
	// EnvRecord is the folder in which the kernel records how a cell is compiled and linked.
	EnvRecord = "GONBATCH_RECORD"
)
