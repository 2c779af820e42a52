package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/logger"
	"gonbatch/trainer"
)

// These variables tell the child of TestSignals where to send itself a signal, and which one.
const (
	signalPlace  = "TRAINER_TEST_SIGNAL_PLACE"
	signalNumber = "TRAINER_TEST_SIGNAL"
)

// raise sends this process a signal, if this is the place.
func raise(place string) {
	if os.Getenv(signalPlace) != place {
		return
	}
	var number int
	_, _ = fmt.Sscan(os.Getenv(signalNumber), &number)
	_ = syscall.Kill(os.Getpid(), syscall.Signal(number))
	time.Sleep(200 * time.Millisecond) // For the signal to reach the program's goroutine.
}

// endLogger creates a file when it is closed.
type endLogger struct {
	logger.Logger
	file string
}

func (l endLogger) Params(map[string]any) error             { return nil }
func (l endLogger) Scalars(int64, map[string]float64) error { return nil }
func (l endLogger) Close() error {
	raise("loggers")
	return os.WriteFile(l.file, nil, 0o644)
}

// raisingBlobs raises a signal while it is evaluated, and then takes its time.
type raisingBlobs struct{ ranktest.Blobs }

func (b raisingBlobs) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	raise("test")
	return b.Blobs.Batch(indices)
}

// signalBody is a whole program: it trains, tests and closes its world.
func signalBody(t *testing.T) {
	folder := os.Getenv("CHECKPOINTS")
	callback := trainer.Callback{
		Name:     "signal",
		BatchEnd: func(e *trainer.Event) error { raise(fmt.Sprint("update ", e.Step)); return nil },
		FitEnd:   func(*trainer.Event) error { raise("fit end"); return nil },
	}
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: folder, Off: os.Getenv("OFF") != ""}}
	tr, err := trainer.New(world(t), c, blobTask(plainNet), trainer.WithCallbacks(callback), trainer.WithLogger(endLogger{file: filepath.Join(folder, "ended")}))
	if err != nil {
		t.Fatal(err)
	}
	raise("new")
	if err := tr.Fit(context.Background(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	raise("after")
	if _, err := tr.Test(context.Background(), raisingBlobs{103}); err != nil {
		t.Fatal(err)
	}
	if err := tr.World().Close(); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// TestSignals: wherever a signal arrives in a program with a trainer, the checkpoints are complete,
// the loggers finish, and the exit code says what the job must do.
func TestSignals(t *testing.T) {
	if os.Getenv(signalPlace) != "" {
		signalBody(t)
		return
	}
	const again = 75
	tests := []struct {
		place  string
		signal syscall.Signal
		env    string
		code   int // -1: the signal ended it.
		orCode int // Also accepted, if two ends race or the shell decides.
	}{
		{"new", syscall.SIGTERM, "GONBATCH_REQUEUE=75", again, again},
		{"update 24", syscall.SIGTERM, "GONBATCH_REQUEUE=75", again, again},
		{"fit end", syscall.SIGTERM, "GONBATCH_REQUEUE=75", again, again},
		{"fit end", syscall.SIGUSR1, "GONBATCH_REQUEUE=75", again, again},
		{"after", syscall.SIGUSR1, "GONBATCH_REQUEUE=75", again, again},
		{"test", syscall.SIGTERM, "GONBATCH_REQUEUE=75", again, again},
		{"loggers", syscall.SIGTERM, "GONBATCH_REQUEUE=75", again, 0}, // The program may end by itself first.
		{"test", syscall.SIGTERM, "", -1, -1},
		{"test", syscall.SIGINT, "GONBATCH_REQUEUE=75", -1, 0}, // A background job ignores SIGINT.
		{"fit end", syscall.SIGTERM, "", -1, -1},
		{"test", syscall.SIGUSR1, "", 0, 0},
		{"nowhere", syscall.SIGUSR1, "GONBATCH_REQUEUE=75", 0, 0},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %v %s", test.place, test.signal, test.env), func(t *testing.T) {
			folder := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignals$", "-test.v", "-test.timeout=3m")
			cmd.Env = append(os.Environ(), "CHECKPOINTS="+folder, signalPlace+"="+test.place, fmt.Sprintf("%s=%d", signalNumber, test.signal), test.env)
			out, err := bounded.CombinedOutput(cmd)
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != test.code && code != test.orCode {
				t.Errorf("exit code %d, want %d:\n%s", code, test.code, out)
			}
			if _, err := os.Stat(filepath.Join(folder, "ended")); err != nil {
				t.Errorf("the loggers have not ended: %v\n%s", err, out)
			}
			if test.place != "new" {
				newest(t, folder, 24)
			}
		})
	}
}

// TestSignalTwice: a second signal while the loggers finish after a stop does not change the exit
// code.
func TestSignalTwice(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignalTwice$", "-test.v", "-test.timeout=3m")
	if os.Getenv("CHECKPOINTS") == "" {
		cmd.Env = append(os.Environ(), "CHECKPOINTS="+t.TempDir(), signalPlace+"=loggers", fmt.Sprintf("%s=%d", signalNumber, syscall.SIGTERM), "GONBATCH_REQUEUE=75")
		out, _ := bounded.CombinedOutput(cmd)
		if code := cmd.ProcessState.ExitCode(); code != 75 {
			t.Errorf("exit code %d, want 75:\n%s", code, out)
		}
		return
	}
	folder := os.Getenv("CHECKPOINTS")
	first := trainer.Callback{Name: "first", BatchEnd: func(e *trainer.Event) error {
		if e.Step == 5 {
			return syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		}
		return nil
	}}
	c := trainer.Config{MaxEpochs: 100000, BatchSize: 12, Checkpoint: trainer.CheckpointConfig{Dir: folder}}
	tr, err := trainer.New(world(t), c, blobTask(plainNet), trainer.WithCallbacks(first), trainer.WithLogger(endLogger{file: filepath.Join(folder, "ended")}))
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(tr.Fit(context.Background(), ranktest.Blobs(145), nil))
}

// TestOwnHandler: a program that handles a signal itself, outside Fit, ends as it wants to.
func TestOwnHandler(t *testing.T) {
	const own = "TRAINER_TEST_OWN_HANDLER"
	if os.Getenv(own) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOwnHandler$", "-test.v", "-test.timeout=3m")
		cmd.Env = append(os.Environ(), own+"="+t.TempDir())
		out, _ := bounded.CombinedOutput(cmd)
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("exit code %d, want the program's own 3:\n%s", code, out)
		}
		return
	}
	folder := os.Getenv(own)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	tr, _ := newTrainer(t, trainer.Config{BatchSize: 12}, blobTask(plainNet), trainer.WithLogger(endLogger{file: filepath.Join(folder, "ended")}))
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	for {
		if _, err := os.Stat(filepath.Join(folder, "ended")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := tr.Test(context.Background(), ranktest.Blobs(103)); err != nil { // Its loggers have finished, which is no error.
		t.Fatal(err)
	}
	os.Exit(3)
}
