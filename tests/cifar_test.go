package tests

import (
	"image/color"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// cifarArguments are for a small network and few batches.
var cifarArguments = []string{"-channels", "8", "-max_epochs", "3", "-batch_size", "16", "-lr", "0.02", "-log_every", "3", "-trial", "3"}

// TestCIFAR trains the notebook on two devices of one rank, and on two ranks in bfloat16.
func TestCIFAR(t *testing.T) {
	tier.Long(t)
	for _, two := range []string{"--devices", "--tasks"} {
		precision := map[string]string{"--devices": "32-true", "--tasks": "bf16-mixed"}[two]
		t.Run(two, func(t *testing.T) {
			u := newUser(t, ranktest.QuickCompilation, drawCIFAR(t))
			args := []string{"--local", two, "2", example(t, "cifar10_resnet18.ipynb"), "--", "-precision", precision}
			checkCIFAR(t, u, u.mustSubmit(t, append(args, cifarArguments...)...))
		})
	}
}

// cifarOnTwoNodes trains the notebook on a cluster.
func cifarOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation, drawCIFAR(t))...)
	args := []string{"--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "cifar10_resnet18.ipynb"), "--"}
	checkCIFAR(t, u, u.mustSubmit(t, append(args, cifarArguments...)...))
}

// TestCIFARWithoutNetwork: if the images are missing and can't be downloaded, submit says where to
// put them.
func TestCIFARWithoutNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := newUser(t, "GONBATCH_DATA="+dir, "HTTPS_PROXY=http://127.0.0.1:1")
	out, err := u.submit(t, "--local", example(t, "cifar10_resnet18.ipynb"))
	if err == nil {
		t.Error("it succeeded")
	}
	folder := filepath.Join(dir, "cifar10")
	wantAll(t, out, "cannot get cifar-10-binary.tar.gz", "cannot connect", "put it at "+filepath.Join(folder, "cifar-10-binary.tar.gz"),
		"copy or link it to "+filepath.Join(folder, "cifar-10-batches-bin"))
}

// TestCIFARInJupyter executes the notebook in a real Jupyter client.
func TestCIFARInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "cifar10_resnet18.ipynb", ranktest.QuickCompilation, drawCIFAR(t), "GONBATCH_CHECKPOINTS="+t.TempDir(), "TRAINER_MAX_EPOCHS=2",
		"TRAINER_BATCH_SIZE=8", "TRAINER_LIMIT_TRAIN_BATCHES=12", "TRAINER_LIMIT_VAL_BATCHES=1", "TRAINER_EVAL_BATCH_SIZE=20")
	last := result.Outputs[len(result.Outputs)-1]
	checkFall(t, printedLosses(t, last, ""), 0.9)
	accuracy(t, last) // A few batches are too little for a good one; TestCIFAR checks it.
	checkSpeed(t, last, "1")
	checkShown(t, result, 0, 0, 1, 0, 0, 0, 1)
}

// drawCIFAR writes some images in CIFAR-10's format, and returns the variable with which programs
// find them. A class is a shape in a color, at any place: easy to learn.
func drawCIFAR(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "cifar10", "cifar-10-batches-bin")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"} {
		var content []byte
		random := rand.New(rand.NewPCG(1, uint64(i)))
		for example := range 60 {
			content = append(content, drawPhoto(example%10, random)...)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "GONBATCH_DATA=" + dir
}

// drawPhoto returns the record of an image: its class, then red, green and blue.
func drawPhoto(class int, random *rand.Rand) []byte {
	const side = 32
	shade := [5]color.RGBA{{R: 220, G: 60, B: 60}, {R: 60, G: 200, B: 60}, {R: 70, G: 80, B: 220}, {R: 220, G: 210, B: 60}, {R: 200, G: 60, B: 210}}[class%5]
	x, y, size := 10+random.IntN(12), 10+random.IntN(12), 6+random.IntN(4)
	record := append([]byte{byte(class)}, make([]byte, 3*side*side)...)
	for i := range side * side {
		dx, dy := i%side-x, i/side-y
		inside := max(dx*dx, dy*dy) < size*size && (class < 5 || dy%4 == 0) // A square, or stripes.
		for channel, level := range []uint8{shade.R, shade.G, shade.B} {
			value := random.IntN(40)
			if inside {
				value += int(level) - 20
			}
			record[1+channel*side*side+i] = byte(value)
		}
	}
	return record
}

// checkCIFAR checks what a run of the notebook on two devices has found: the loss falls, the test
// is better than guessing, and rank 0 alone prints and draws.
func checkCIFAR(t *testing.T, u user, out string) {
	t.Helper()
	if got := accuracy(t, out); got < 0.5 {
		t.Errorf("test accuracy %.4f, want at least 0.5; guessing has 0.1:\n%s", got, out)
	}
	checkSpeed(t, out, "2")
	run := u.run(t)
	losses := seriesOf(t, run, "", "train/loss")
	checkFall(t, losses, 0.6)
	if len(losses) < 6 {
		t.Errorf("train/loss %v, want at least 6 values", losses)
	}
	checkLogged(t, run, "accuracy")
	checkLogged(t, run, "speed")
	checkRecorded(t, run, 2)
}

// trainingSpeed matches a line of the notebook's comparison of devices.
var trainingSpeed = regexp.MustCompile(`devices: (\d+), (\d+\.\d) ms for a batch of \d+, (\d+) images/s`)

// checkSpeed checks that rank 0 alone printed the speed of so many devices, and of one alone if
// these are several.
func checkSpeed(t *testing.T, out, devices string) {
	t.Helper()
	var of []string
	for _, line := range trainingSpeed.FindAllStringSubmatch(out, -1) {
		of = append(of, line[1])
		for _, text := range line[2:] {
			if value, err := strconv.ParseFloat(text, 64); err != nil || value <= 0 {
				t.Errorf("%s: the time and the speed must be positive, %v", line[0], err)
			}
		}
	}
	want := slices.Compact([]string{devices, "1"})
	if !slices.Equal(of, want) || strings.Count(out, "times as fast") != len(want)-1 {
		t.Errorf("speeds of %q devices, want %q, compared once if there are several:\n%s", of, want, out)
	}
}
