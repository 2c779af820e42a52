package distributed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// Each rank of these tests runs a few collectives and then the scenario that SCENARIO names. VICTIM
// is the rank that fails.
const (
	scenarioVariable = "SCENARIO"
	victimVariable   = "VICTIM"
)

// stuckLimit is the time limit for stuck ranks in these tests. On a busy machine even healthy ranks
// wait seconds for one another.
const stuckLimit = 10 * time.Second

// scenario is what goes wrong: on the victim and, at the same time, on the others.
type scenario struct{ victim, others func(w *distributed.World) }

var scenarios = map[string]scenario{
	"killed":              {killed, reduceForEver},
	"killed in training":  {killed, trainForEver},
	"killed in a step":    {inStep(syscall.SIGKILL), trainInProgram},
	"stopped in a step":   {inStep(syscall.SIGSTOP), trainInProgram},
	"killed in flight":    {whileTravelling(syscall.SIGKILL), travelForEver},
	"stopped in flight":   {whileTravelling(syscall.SIGSTOP), travelForEver},
	"panics":              {func(*distributed.World) { panic("no more batches") }, reduceForEver},
	"panics elsewhere":    {panicElsewhere, reduceForEver},
	"gives up":            {func(*distributed.World) { log.Fatal("read data: no such file") }, reduceForEver},
	"exits":               {func(*distributed.World) { os.Exit(3) }, reduceForEver},
	"stopped":             {func(*distributed.World) { signalSelf(syscall.SIGSTOP) }, reduceForEver},
	"loops":               {func(*distributed.World) { loop() }, reduceForEver},
	"alone in a barrier":  {barrier, func(*distributed.World) { time.Sleep(time.Minute) }},
	"another size":        {func(w *distributed.World) { reduce(w, 100) }, func(w *distributed.World) { reduce(w, 5) }},
	"another kind":        {barrier, func(w *distributed.World) { reduce(w, 5) }},
	"others have closed":  {barrier, func(*distributed.World) {}},
	"has NaN":             {func(w *distributed.World) { w.Abort(notANumber(w)) }, trainForEver},
	"ends without Close":  {func(*distributed.World) { os.Exit(0) }, func(w *distributed.World) { time.Sleep(7 * time.Second); os.Exit(0) }},
	"closes early":        {func(w *distributed.World) { _ = w.Close(); os.Exit(0) }, func(w *distributed.World) { time.Sleep(2 * time.Second) }},
	"all are slow":        {slowly, slowly},
	"works on main":       {onMain, onMain},
	"works alone":         {alone, func(w *distributed.World) { fmt.Println("reduce:", w.AllReduceSum(make([]float64, 5))) }},
	"ends slowly":         {func(w *distributed.World) { w.OnClose(sleepLong) }, func(*distributed.World) {}},
	"told to stop":        {func(*distributed.World) { signalSelf(syscall.SIGTERM) }, reduceForEver},
	"all are told to end": {func(*distributed.World) { signalSelf(syscall.SIGTERM) }, func(*distributed.World) { signalSelf(syscall.SIGTERM) }},
}

func killed(*distributed.World) { signalSelf(syscall.SIGKILL) }

func signalSelf(s syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), s)
	time.Sleep(time.Minute)
}

func panicElsewhere(*distributed.World) {
	go func() { panic("no more batches") }()
	time.Sleep(time.Minute)
}

func loop() {
	for i := 0; ; i++ {
		if i < 0 {
			i = 0
		}
	}
}

func barrier(w *distributed.World) { fmt.Println("barrier:", w.Barrier()) }

func reduce(w *distributed.World, n int) {
	fmt.Println("reduce:", w.AllReduceSum(make([]float64, n)))
	time.Sleep(time.Minute)
}

func reduceForEver(w *distributed.World) {
	for {
		if err := w.AllReduceSum(make([]float64, 1000)); err != nil {
			log.Fatal(err)
		}
	}
}

// trainForEver runs no collective, so it doesn't notice a failure by itself.
func trainForEver(*distributed.World) { time.Sleep(time.Minute) }

// trainInProgram trains with collectives in the compiled step.
func trainInProgram(w *distributed.World) { fitForEver(w, func() {}) }

// fitForEver trains, and calls begun after the first epoch, when everything is compiled.
func fitForEver(w *distributed.World, begun func()) {
	loader, err := w.Loader(ranktest.Blobs(145), distributed.LoaderOptions{BatchSize: 12})
	if err != nil {
		log.Fatal(err)
	}
	trainer := newTrainer(w, 42)
	for done := 0; ; done++ {
		if err := epoch(w, trainer, loader); err != nil {
			log.Fatal(err)
		}
		if done == 0 {
			begun()
		}
	}
}

// inStep trains, and sends itself a signal after many steps.
func inStep(s syscall.Signal) func(*distributed.World) {
	return func(w *distributed.World) {
		fitForEver(w, func() {
			time.AfterFunc(time.Second, func() {
				mark()
				_ = syscall.Kill(os.Getpid(), s)
			})
		})
	}
}

// travelForEver runs programs in which sums travel while the program computes. It calls begun after
// the first one, when everything is compiled.
func travelForEver(w *distributed.World) { travel(w, func() {}) }

func travel(w *distributed.World, begun func()) {
	pjrt.Split(true)
	exec := graph.MustNewExec(w.Backend(), func(x *graph.Node) []*graph.Node {
		first := pjrt.StartAllReduceMean(x)
		for range 100 {
			x = graph.Tanh(graph.Dot(x, x).Product())
		}
		second := pjrt.StartAllReduceMean(x)
		return []*graph.Node{first(), second()}
	})
	matrix := tensors.FromShape(shapes.Make(dtypes.Float32, 400, 400))
	for done := 0; ; done++ {
		for _, mean := range exec.MustCall(matrix) {
			mean.MustFinalizeAll()
		}
		if done == 0 {
			begun()
		}
	}
}

// whileTravelling is travelForEver, and sends itself a signal after many programs.
func whileTravelling(s syscall.Signal) func(*distributed.World) {
	return func(w *distributed.World) {
		travel(w, func() {
			time.AfterFunc(time.Second, func() {
				mark()
				_ = syscall.Kill(os.Getpid(), s)
			})
		})
	}
}

func slowly(w *distributed.World) {
	_ = sleepLong()
	fmt.Println("reduce:", w.AllReduceSum(make([]float64, 5)))
}

// sleepLong sleeps for longer than the time limit for stuck ranks.
func sleepLong() error {
	limit, err := time.ParseDuration(os.Getenv("GONBATCH_STUCK_TIMEOUT"))
	time.Sleep(2 * limit)
	return err
}

// onMain makes rank 0 work while the others wait.
func onMain(w *distributed.World) {
	for range 2 {
		if err := w.OnMain(sleepLong); err != nil {
			log.Fatal(err)
		}
	}
}

// alone works while the others wait in a collective, and then enters it.
func alone(w *distributed.World) {
	if err := w.Alone("sleeps", sleepLong); err != nil {
		log.Fatal(err)
	}
	fmt.Println("reduce:", w.AllReduceSum(make([]float64, 5)))
}

func notANumber(w *distributed.World) error {
	return &distributed.FailureError{Kind: rundir.NaN, Err: fmt.Errorf("the loss is %v", math.NaN())}
}

// failingRank is the body of a rank.
func failingRank(t *testing.T) {
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	for step := range 41 {
		w.Progress(int64(step) + 1)
		if err := w.AllReduceSum(make([]float64, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(os.Getenv(scenarioVariable), "without Close") {
		w.Idle()
	}
	time.Sleep(2 * time.Second) // Let the watch learn of the step.
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := scenarios[os.Getenv(scenarioVariable)]
	if fmt.Sprint(w.Rank()) == os.Getenv(victimVariable) {
		mark()
		s.victim(w)
	} else {
		s.others(w)
	}
}

// mark records the moment of the failure.
func mark() {
	if err := os.WriteFile(filepath.Join(os.Getenv(rundir.EnvDir), "moment"), []byte(stalled().String()), 0o666); err != nil {
		log.Fatal(err)
	}
}

// failureCase is a scenario and the expected report.
type failureCase struct {
	scenario string
	victim   int
	kind     rundir.FailureKind
	want     []string // Patterns in the report.
	stacks   bool
}

var failureCases = []failureCase{
	{"killed", 0, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"killed", 1, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"killed", 2, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"killed in training", 1, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"killed in a step", 1, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"stopped in a step", 2, rundir.Stuck, []string{"has been silent for", `has been in all-reduce \d+ \(\d+ float(32|64)\)`}, true},
	{"killed in flight", 1, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"stopped in flight", 2, rundir.Stuck, []string{"has been silent for", `has been in all-reduce \d+ \(160000 float32\)`}, true},
	{"panics", 1, rundir.Died, []string{"panic: no more batches", "failure_test.go"}, false},
	{"panics elsewhere", 0, rundir.Died, []string{"panic: no more batches", "failure_test.go"}, false},
	{"gives up", 1, rundir.Died, []string{"read data: no such file"}, false},
	{"exits", 2, rundir.Died, []string{"its process ended without World.Close"}, false},
	{"told to stop", 1, rundir.Died, []string{"told to stop by a signal"}, false},
	{"has NaN", 1, rundir.NaN, []string{"the loss is NaN"}, false},
	{"has NaN", 0, rundir.NaN, []string{"the loss is NaN"}, false},
	{"stopped", 1, rundir.Stuck, []string{"has been silent for", `has been in all-reduce \d+ \(1000 float64\)`}, true},
	{"stopped", 0, rundir.Stuck, []string{"has been silent for", `has been in all-reduce \d+ \(1000 float64\)`}, true},
	{"loops", 2, rundir.Stuck, []string{"has not entered the collective that the others are in", `has been computing or loading since it left all-reduce \d+ \(10 float64\)`}, true},
	{"another size", 1, rundir.Mismatch, []string{"the ranks disagree", `all-reduce \d+ \(100 float64\)`, `all-reduce \d+ \(5 float64\)`}, true},
	{"another kind", 1, rundir.Mismatch, []string{"the ranks disagree", `barrier \d+ where|where .* barrier \d+`, `all-reduce \d+ \(5 float64\)`}, true},
	{"others have closed", 1, rundir.Mismatch, []string{`has called Close after \d+ collectives and won't call barrier \d+`}, true},
}

// TestFailure: whatever happens to a rank, all ranks end in time, and a single report gives the
// reason.
func TestFailure(t *testing.T) {
	if ranktest.InRank() {
		failingRank(t)
		return
	}
	t.Parallel()
	launchers := []ranktest.Launcher{ranktest.Torchrun, ranktest.OpenMPI, ranktest.MPICH, ranktest.Torchrun.OnGPUs(t, failureRanks)}
	for l, launcher := range launchers {
		t.Run(launcher.String(), func(t *testing.T) {
			t.Parallel()
			for i, c := range failureCases {
				if testing.Short() && i%len(launchers) != l {
					continue // Each case with one launcher.
				}
				if launcher.Name == ranktest.OpenMPI.Name && c.scenario == "others have closed" {
					continue // All ranks end, but mpirun 4.1 sometimes hangs if some of them were in MPI_Finalize.
				}
				t.Run(fmt.Sprintf("rank %d %s", c.victim, c.scenario), func(t *testing.T) {
					t.Parallel()
					checkFailure(t, launcher, c)
				})
			}
		})
	}
}

const failureRanks = 3

// withoutCMA prevents UCX, MPICH's transport, from reading another process's memory. If the other
// process is killed meanwhile, UCX ends this one at once, before it can report anything.
const withoutCMA = "UCX_TLS=^cma"

func startScenario(t *testing.T, launcher ranktest.Launcher, name string, victim int) (rundir.Dir, []ranktest.Ended) {
	t.Helper()
	dir := rundir.At(t.TempDir())
	ended := ranktest.StartLogged(t, launcher, failureRanks, dir.Path(), []string{rundir.EnvDir + "=" + dir.Path(), scenarioVariable + "=" + name,
		fmt.Sprintf("%s=%d", victimVariable, victim), "GONBATCH_STUCK_TIMEOUT=" + limitFor(name).String(), "GOTRACEBACK=single", withoutCMA})
	t.Cleanup(func() {
		if t.Failed() {
			showLogs(t, dir)
		}
	})
	return dir, ended
}

// limitFor returns the time limit for stuck ranks in a scenario. It is long in scenarios without a
// stuck rank, so that a slow machine doesn't cause one.
func limitFor(name string) time.Duration {
	for _, c := range failureCases {
		if c.scenario == name && c.kind == rundir.Stuck {
			return stuckLimit
		}
	}
	if slices.Contains([]string{"all are slow", "works on main", "works alone", "ends slowly"}, name) {
		return stuckLimit
	}
	return time.Minute
}

func showLogs(t *testing.T, dir rundir.Dir) {
	logs, _ := filepath.Glob(filepath.Join(dir.Logs(), "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		t.Logf("%s:\n%.3000s", filepath.Base(path), text)
	}
}

func checkFailure(t *testing.T, launcher ranktest.Launcher, c failureCase) {
	dir, ended := startScenario(t, launcher, c.scenario, c.victim)
	checkEnded(t, dir, ended, c)
	f, err := rundir.ReadFailure(dir)
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	if f.Kind != c.kind || f.Rank != c.victim || f.Host != host || f.Step != 41 {
		t.Errorf("recorded: %s of rank %d on %s at step %d; want %s of rank %d on %s at step 41", f.Kind, f.Rank, f.Host, f.Step, c.kind, c.victim, host)
	}
	report, reports := "", 0
	for rank := range failureRanks {
		text, err := os.ReadFile(dir.RankLog(rank))
		if err != nil {
			t.Fatal(err)
		}
		if _, after, ok := strings.Cut(string(text), fmt.Sprintf("gonbatch: rank %d on %s failed at step 41 (%s):", c.victim, host, c.kind)); ok {
			report = after
			reports++
		}
		if c.stacks && (!strings.HasPrefix(c.scenario, "stopped") || rank != c.victim) && (c.scenario != "others have closed" || rank == c.victim) {
			if stack, err := os.ReadFile(dir.StackPath(rank)); err != nil || !strings.Contains(string(stack), "failure_test.go") {
				t.Errorf("stacks of rank %d: %v\n%s", rank, err, stack)
			}
		}
	}
	if reports != 1 {
		t.Fatalf("%d reports, want one", reports)
	}
	for _, want := range c.want {
		if !regexp.MustCompile(want).MatchString(report) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// checkEnded verifies that all ranks ended in time, with a non-zero exit code.
func checkEnded(t *testing.T, dir rundir.Dir, ended []ranktest.Ended, c failureCase) {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir.Path(), "moment"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir.Path(), "moment"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := time.ParseDuration(string(text))
	if err != nil {
		t.Fatal(err)
	}
	// Time that the ranks spend waiting for a processor on a busy machine doesn't count.
	limit := 5*time.Second + 5*(stalled()-before)
	if c.kind == rundir.Stuck {
		limit += stuckLimit
	}
	for i, e := range ended {
		if e.Code == 0 && (c.scenario != "others have closed" || i == c.victim) {
			t.Errorf("process %d ended with code 0", i)
		}
		took := e.At.Sub(info.ModTime())
		t.Logf("process %d ended with code %d after %v", i, e.Code, took.Round(time.Millisecond))
		if took > limit {
			t.Errorf("process %d ended after %v, want at most %v", i, took, limit)
		}
	}
}

// stalled returns how long processes of this machine have waited for a processor since it was
// booted. If the kernel doesn't count that, it returns the current time, as if they had always
// waited.
func stalled() time.Duration {
	var avg10, avg60, avg300 float64
	var microseconds int64
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "some avg10=%f avg60=%f avg300=%f total=%d", &avg10, &avg60, &avg300, &microseconds)
	}
	if err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(microseconds) * time.Microsecond
}

// TestNoFailure: ranks that end normally or are only slow are not reported as failed.
func TestNoFailure(t *testing.T) {
	if ranktest.InRank() {
		failingRank(t)
		return
	}
	t.Parallel()
	tests := []struct {
		scenario string
		victim   int
		code     int
	}{
		{"ends without Close", 2, 0},
		{"ends without Close", 0, 0},
		{"closes early", 0, 0},
		{"closes early", 2, 0},
		{"all are slow", 1, 0},
		{"works on main", 0, 0},
		{"works alone", 2, 0},
		{"ends slowly", 0, 0},
		{"all are told to end", 0, 128 + int(syscall.SIGTERM)},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("rank %d: %s", test.victim, test.scenario), func(t *testing.T) {
			t.Parallel()
			dir, ended := startScenario(t, ranktest.Torchrun, test.scenario, test.victim)
			for rank, e := range ended {
				if e.Code != test.code {
					t.Errorf("rank %d ended with code %d, want %d", rank, e.Code, test.code)
				}
			}
			if f, err := rundir.ReadFailure(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("recorded as a failure: %+v, %v", f, err)
			}
		})
	}
}
