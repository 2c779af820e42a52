package tests

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// smallGPT are flags of the notebook for a model that learns smallText in a few seconds.
var smallGPT = []string{
	"-layers", "1", "-heads", "2", "-width", "32", "-context", "16", "-batch_size", "16", "-max_steps", "80", "-val_check_interval", "20",
	"-schedule.warmup_steps", "5", "-lr", "0.01", "-prompt", "the ", "-length", "200",
}

// smallText is random sequences of four words.
func smallText() string {
	var text strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range 6000 {
		text.WriteString([]string{"the ", "gopher ", "écrit ", "go. "}[random.IntN(4)])
	}
	return text.String()
}

// TestGPTNotebook trains the notebook on a file of the user's, on one rank and on two. Both must
// have the same losses, and write the same words.
func TestGPTNotebook(t *testing.T) {
	tier.Long(t)
	file := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(file, []byte(smallText()), 0o600); err != nil {
		t.Fatal(err)
	}
	var single []float64
	for _, tasks := range []string{"1", "2"} {
		u := newUser(t, ranktest.QuickCompilation)
		args := append([]string{"--local", "--tasks", tasks, example(t, "gpt.ipynb"), "--", "-text", file}, smallGPT...)
		out := u.mustSubmit(t, args...)
		losses := checkGPT(t, u, 4)
		checkWritten(t, out)
		if single == nil {
			single = losses
		}
		for i, loss := range losses {
			if math.Abs(loss-single[i]) > 1e-3*single[i] {
				t.Errorf("validation %d on %s ranks: val/loss %g, on one rank %g", i+1, tasks, loss, single[i])
			}
		}
		if first, last := losses[0], losses[len(losses)-1]; !(last < 0.7*first && last < 0.6) {
			t.Errorf("val/loss %v on %s ranks: want a fall to less than 0.6", losses, tasks)
		}
	}
}

// gptOnTwoNodes trains the notebook on its own text for a few steps on a cluster.
func gptOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	args := append([]string{"--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "gpt.ipynb"), "--"}, smallGPT...)
	out := u.mustSubmit(t, append(args, "-max_steps", "20", "-val_check_interval", "10", "-limit_val_batches", "1")...)
	if losses := checkGPT(t, u, 2); losses[1] >= losses[0] {
		t.Errorf("val/loss %v: want a fall", losses)
	}
	if strings.Count(out, "\nthe ") != 1 {
		t.Errorf("want one written text in\n%s", out)
	}
}

// TestGPTInJupyter executes the notebook in a real Jupyter client, with few steps.
func TestGPTInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "gpt.ipynb", ranktest.QuickCompilation, "TRAINER_MAX_STEPS=4", "TRAINER_BATCH_SIZE=8", "TRAINER_SCHEDULE_WARMUP_STEPS=2",
		"TRAINER_VAL_CHECK_INTERVAL=2", "TRAINER_EVAL_BATCH_SIZE=16", "TRAINER_LIMIT_VAL_BATCHES=1")
	all := strings.Join(result.Outputs, "\n")
	wantAll(t, all, "different ones. It begins:", "\npackage ", "val/bits_per_token", "the weights are those after step ")
	checkShown(t, result, 0, 0, 0, 0, 0, 0, 1, 0, 0)
	kinds := regexp.MustCompile(`characters, (\d+) different ones`).FindStringSubmatch(all)
	losses := regexp.MustCompile(`, val/loss (\d\.\d+)`).FindAllStringSubmatch(all, -1)
	if kinds == nil || len(losses) == 0 {
		t.Fatalf("no number of characters, or no validation loss, in\n%s", all)
	}
	if loss, guess := number(t, losses[len(losses)-1][1]), math.Log(number(t, kinds[1])); loss > 0.95*guess {
		t.Errorf("val/loss %g, want at most 0.95 of that of guessing, %g", loss, guess)
	}
	if last := result.Outputs[len(result.Outputs)-1]; !strings.Contains(last, "func New") || len(last) < 400 {
		t.Errorf("the last cell has written %q", last)
	}
}

// checkGPT checks the metrics and the picture of a run of the notebook, and returns the validation
// losses.
func checkGPT(t *testing.T, u user, validations int) (losses []float64) {
	t.Helper()
	run := u.run(t)
	all, err := rundir.ReadMetrics(run)
	ok(t, err)
	for _, m := range all {
		loss, ok := m.Values["val/loss"]
		if !ok {
			continue
		}
		losses = append(losses, float64(loss))
		if bits := float64(m.Values["val/bits_per_token"]); math.Abs(bits*math.Ln2-float64(loss)) > 1e-4 {
			t.Errorf("step %d: val/bits_per_token %g and val/loss %g, want %g bits", m.Step, bits, loss, float64(loss)/math.Ln2)
		}
	}
	if len(losses) != validations {
		t.Fatalf("val/loss %v, want %d values", losses, validations)
	}
	checkLogged(t, run, "curve")
	checkRecorded(t, run, 1)
	return losses
}

// checkWritten checks that the job has written one text, and that most of its words are those of
// smallText.
func checkWritten(t *testing.T, out string) {
	t.Helper()
	var written []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "the ") {
			written = append(written, line)
		}
	}
	if len(written) != 1 || len([]rune(written[0])) != len("the ")+200 {
		t.Fatalf("written: %q; want one text of 4 + 200 characters in\n%s", written, out)
	}
	if other := strings.Trim(written[0], smallText()); other != "" {
		t.Errorf("%q has other characters than the text", written[0])
	}
	words, right := strings.Fields(written[0]), 0
	for _, word := range words {
		if strings.Contains(" the gopher écrit go. ", " "+word+" ") {
			right++
		}
	}
	if right < len(words)*3/4 {
		t.Errorf("%d of %d words are right: %q", right, len(words), written[0])
	}
}
