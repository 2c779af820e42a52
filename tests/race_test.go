package tests

import (
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/tier"
	"gonbatch/tests/jupyter"
)

// raced lists packages in which goroutines share state: those of the kernel, the rendezvous, the
// ring and the watch of the ranks, datasets and the loading of batches, checkpoints, the loggers,
// and what follows and records a job.
var raced = []string{"./kernel/relay", "./kernel/magic", "./kernel/wire", "./distributed/keyvalue", "./distributed/network", "./distributed/tcp", "./distributed/watch", "./data", "./data/load", "./data/lane",
	"./checkpoint", "./logger", "./submit", "./submit/executed"}

// unraced are their tests that take long, and show nothing about goroutines, or that measure time,
// which the race detector takes itself.
var unraced = []string{"TestKilledWhileSaving", "TestDecodersRefuseTheSame", "TestOverhead"}

// racedTests are the tests of the trainer in which a training run shares state with the goroutines
// that load, save, log, record and listen, and in which predictions are gathered. The others take
// too long.
var racedTests = []string{
	"TestCheckpointDuringSteps", "TestDataWait", "TestLoadsDuringSteps", "TestLoggersNeverStop", "TestOperations", "TestOwnHandler", "TestOwnLoggerHangs",
	"TestPredictionLoadsAhead", "TestProfile", "TestProfileOfStopped", "TestRandomGathering", "TestSignals", "TestSignalTwice", "TestStopTogether", "TestStreamIsRepaired",
	"TestStreamOverRanks", "TestTornExample", "TestTornValidation", "TestTwoTrainings", "TestValidationHearsAStop", "TestZero1FitsAgain",
}

// withoutCheckptr turns off a check that comes with the race detector: GoMLX's backend in Go makes
// pointers beyond the end of slices, though it doesn't use them.
const withoutCheckptr = "-gcflags=github.com/gomlx/compute/...=-d=checkptr=0"

// TestRace runs the tests of these packages again, with the race detector.
func TestRace(t *testing.T) {
	tier.Long(t)
	race(t, slices.Concat([]string{"-skip", alternatives(unraced)}, raced)...)
}

// TestRaceOfTrainer runs some tests of the trainer with it.
func TestRaceOfTrainer(t *testing.T) {
	tier.Long(t)
	t.Setenv("TRAINER_SEEDS", "40") // All of TestRandomGathering, though -short.
	race(t, "-run", alternatives(racedTests), "./trainer")
}

// alternatives returns the expression for any of these tests.
func alternatives(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

func race(t *testing.T, args ...string) {
	t.Helper()
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	args = slices.Concat([]string{"test", "-race", "-short", withoutCheckptr}, args)
	if out, err := command(root, "go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
