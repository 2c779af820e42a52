package trainer_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/trainer"
)

// outcomeFile marks a child process of TestHundredKills, and names the file for the trained
// weights.
const outcomeFile = "TRAINER_TEST_OUTCOME"

const killSteps = 2000

// trainToTheEnd is the body of a child: it resumes wherever it was killed.
func trainToTheEnd(t *testing.T) {
	c := trainer.Config{
		MaxSteps: killSteps, BatchSize: 12, Seed: 4, LogEvery: 100, Loggers: []string{"none"}, Schedule: trainer.ScheduleConfig{Kind: "cosine"},
		Checkpoint: trainer.CheckpointConfig{Dir: os.Getenv("CHECKPOINTS"), EverySteps: 5},
	}
	pause, err := time.ParseDuration(os.Getenv("PAUSE"))
	if err != nil {
		t.Fatal(err)
	}
	slow := trainer.WithCallbacks(trainer.Callback{Name: "slow", BatchEnd: func(*trainer.Event) error { time.Sleep(pause); return nil }})
	tr, err := trainer.New(world(t), c, blobTask(plainNet), trainer.WithOutput(os.Stdout), slow)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	writeGob(t, os.Getenv(outcomeFile), weights(t, tr.Store()))
}

// child starts a training run in a separate process.
func child(t *testing.T, checkpoints, outcome string, pause time.Duration, out *bytes.Buffer) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHundredKills$", "-test.v")
	cmd.Env = append(os.Environ(), "CHECKPOINTS="+checkpoints, outcomeFile+"="+outcome, "PAUSE="+pause.String())
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestHundredKills kills two training runs with SIGKILL at fifty random moments each, many of them
// while a checkpoint is being written. They lose at most the work since the last checkpoint, and
// end with the same bits as an undisturbed one.
func TestHundredKills(t *testing.T) {
	if os.Getenv(outcomeFile) != "" {
		trainToTheEnd(t)
		return
	}
	kills := tier.Tries(50, 5)
	undisturbed := tempFile(t, "undisturbed")
	var out bytes.Buffer
	if err := child(t, t.TempDir(), undisturbed, 0, &out).Wait(); err != nil {
		t.Fatalf("undisturbed: %v\n%s", err, out.String())
	}
	var want map[string][]byte
	readGob(t, undisturbed, &want)
	for _, seed := range tier.Fewer([]uint64{2026, 2027}, 1) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var got map[string][]byte
			readGob(t, killAgainAndAgain(t, kills, seed), &got)
			compareWeights(t, got, want)
		})
	}
}

// killAgainAndAgain returns the weights of a training run that was killed this many times.
func killAgainAndAgain(t *testing.T, kills int, seed uint64) (disturbed string) {
	rng := rand.New(rand.NewPCG(seed, 0))
	disturbed = tempFile(t, "disturbed")
	var out bytes.Buffer
	checkpoints, newest := t.TempDir(), int64(0)
	var moments []string
	for range kills {
		out.Reset()
		cmd := child(t, checkpoints, disturbed, 2*time.Millisecond, &out)
		waitForTraining(t, cmd, checkpoints, newest, &out)
		moment := time.Duration(rng.IntN(60_000)) * time.Microsecond
		time.Sleep(moment)
		_ = cmd.Process.Kill()
		err := cmd.Wait()
		moments = append(moments, moment.Round(100*time.Microsecond).String())
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("kill %d came too late or the training failed: %v\n%s", len(moments), err, out.String())
		}
		newest = newestStep(t, checkpoints, newest)
	}
	t.Logf("seed %d, moments after the first checkpoint of each life: %s; reached step %d of %d", seed, strings.Join(moments, " "), newest, killSteps)
	out.Reset()
	if err := child(t, checkpoints, disturbed, 0, &out).Wait(); err != nil {
		t.Fatalf("the last life: %v\n%s", err, out.String())
	}
	return disturbed
}

// waitForTraining returns when a child has written a newer checkpoint.
func waitForTraining(t *testing.T, cmd *exec.Cmd, checkpoints string, newest int64, out *bytes.Buffer) {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		all, err := checkpoint.List(checkpoints)
		if err == nil && len(all) > 0 && all[0].Step > newest {
			return
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Fatalf("no checkpoint after step %d for five minutes:\n%s", newest, out)
}

// newestStep returns the step of the newest valid checkpoint, which must not be older than before.
func newestStep(t *testing.T, checkpoints string, before int64) int64 {
	t.Helper()
	dir, err := checkpoint.Open(checkpoints, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	snapshot, err := dir.Latest(func(message string) { messages = append(messages, message) })
	if err != nil {
		t.Fatal(err)
	}
	if snapshot == nil || snapshot.Step < before || len(messages) > 0 {
		t.Fatalf("checkpoint lost: %v, before it was step %d, %s", snapshot, before, fmt.Sprint(messages))
	}
	return snapshot.Step
}
