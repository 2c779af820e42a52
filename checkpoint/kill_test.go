package checkpoint_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/internal/tier"
)

// saverEnv turns this test's program into a process that saves to the folder in the variable until
// it is killed.
const saverEnv = "GONBATCH_TEST_SAVE_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(saverEnv); path != "" {
		if err := saveForEver(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// numbered returns a snapshot with tensors that are filled with the step's number.
func numbered(step int64) (*checkpoint.Snapshot, error) {
	store := model.NewStore()
	for name, size := range map[string]int{"/weights": 1 << 16, "/moment": 1 << 14, "/bias": 3} {
		data := make([]int64, size)
		for i := range data {
			data[i] = step
		}
		if _, err := store.CreateVariable(name, tensors.FromFlatDataAndDimensions(data, size)); err != nil {
			return nil, err
		}
	}
	s, err := checkpoint.Take(store, nil)
	if err != nil {
		return nil, err
	}
	s.Step, s.Ranks, s.Metrics["loss"] = step, [][]byte{[]byte(strconv.FormatInt(step, 10))}, float64(step%7)
	return s, nil
}

// saveForEver resumes from the newest checkpoint, as a requeued job does, saves each step twice,
// and prints the steps that it has saved.
func saveForEver(path string) error {
	dir, err := checkpoint.Open(path, checkpoint.Options{Keep: 2, Metric: "loss"})
	if err != nil {
		return err
	}
	last, err := dir.Latest(func(message string) { fmt.Println("reported", message) })
	if err != nil {
		return err
	}
	step := int64(1)
	if last != nil {
		step = last.Step + 1
	}
	fmt.Println("from", step)
	for ; ; step++ {
		s, err := numbered(step)
		if err != nil {
			return err
		}
		for range 2 {
			if err := dir.Save(s); err != nil {
				return err
			}
			fmt.Println("saved", step)
		}
	}
}

// TestKilledWhileSaving kills a process at 100 random moments of its saves: no step reported as
// saved is ever lost, every checkpoint read is complete, and no litter piles up.
func TestKilledWhileSaving(t *testing.T) {
	const seed = 20261121
	kills := tier.Tries(100, 40)
	random := rand.New(rand.NewPCG(seed, 0))
	root := t.TempDir()
	longest := 3 * timeOfSave(t, root)
	saved := int64(1)
	cut := 0 // Kills in the middle of a save.
	for kill := range kills {
		saves, wait := random.IntN(3), time.Duration(random.Float64()*float64(longest))
		last := killedSaver(t, root, saved, saves, wait)
		saved = max(saved, last)
		if holds(t, root, saved) > 0 {
			cut++
		}
		if t.Failed() {
			t.Fatalf("kill %d of seed %d, %s after %d saves; the last step that was said to be saved: %d", kill+1, seed, wait, saves, saved)
		}
	}
	t.Logf("%d kills, each within %s of up to two saves; %d steps; %d kills in the midst of a save", kills, longest, saved, cut)
	if saved < int64(kills/4) || cut < kills/10 {
		t.Errorf("%d steps were saved, %d saves were cut: that says too little", saved, cut)
	}
}

// timeOfSave measures the time of saving step 1.
func timeOfSave(t *testing.T, root string) time.Duration {
	t.Helper()
	dir := openAt(t, root, checkpoint.Options{})
	s, err := numbered(1)
	ok(t, err)
	start := time.Now()
	const times = 5
	for range times {
		ok(t, dir.Save(s))
	}
	return time.Since(start) / times
}

// killedSaver runs a process that saves, kills it some time after this many saves, and returns the
// last step that it reported as saved.
func killedSaver(t *testing.T, root string, from int64, saves int, wait time.Duration) (last int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), saverEnv+"="+root)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	var timer *time.Timer
	seen := -1 // The first message precedes the first save.
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "from":
			if start, err := strconv.ParseInt(rest, 10, 64); err != nil || start <= from {
				t.Errorf("it goes on from %s, but step %d was saved", rest, from)
			}
		case "saved":
			last, err = strconv.ParseInt(rest, 10, 64)
			ok(t, err)
		default:
			t.Errorf("the process says %q", lines.Text())
		}
		if seen++; seen == saves {
			timer = time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); timer == nil || !errors.As(err, &exit) || exit.Exited() {
		t.Errorf("the process ended by itself: %v\n%s", err, stderr.String())
	}
	return last
}

// holds reads the newest checkpoint as another process does, and counts the unfinished folders.
func holds(t *testing.T, root string, saved int64) (unfinished int) {
	t.Helper()
	entries, err := os.ReadDir(root)
	ok(t, err)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			unfinished++
		}
	}
	if len(entries)-unfinished > 5 || unfinished > 3 {
		t.Errorf("litter: %v", entries)
	}
	s := latest(t, openAt(t, root, checkpoint.Options{}))
	want, err := numbered(s.Step)
	ok(t, err)
	if s.Step < saved {
		t.Errorf("step %d was saved, step %d is the newest", saved, s.Step)
	}
	sameTensors(t, want, s)
	same(t, want.Ranks, s.Ranks)
	return unfinished
}

// TestReadWhileSaving reads and lists while another goroutine saves and removes.
func TestReadWhileSaving(t *testing.T) {
	root := t.TempDir()
	writer := openAt(t, root, checkpoint.Options{Keep: 1})
	s, err := numbered(1)
	ok(t, err)
	ok(t, writer.Save(s))
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for step := int64(2); ; step++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			s, err := numbered(step)
			if err == nil {
				err = writer.Save(s)
			}
			if err != nil {
				done <- err
				return
			}
		}
	}()
	reader := openAt(t, root, checkpoint.Options{})
	var read []int64
	for range 100 {
		s := latest(t, reader)
		want, err := numbered(s.Step)
		ok(t, err)
		sameTensors(t, want, s)
		read = append(read, s.Step)
		all, err := checkpoint.List(root)
		ok(t, err)
		for _, info := range all {
			if _, err := os.Stat(info.Path); err == nil && !info.Valid() {
				t.Errorf("%s is listed with %v", filepath.Base(info.Path), info.Err)
			}
		}
		if len(all) == 0 {
			t.Error("none is listed")
		}
	}
	close(stop)
	ok(t, <-done)
	if !slices.IsSorted(read) || read[len(read)-1] == 1 { // Otherwise nothing was saved meanwhile.
		t.Errorf("read steps %v", read)
	}
}
