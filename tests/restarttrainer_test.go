package tests

import (
	"path/filepath"
	"testing"

	"gonbatch/internal/rundir"
)

// withTrainer trains with package trainer on two ranks. It has everything that makes resuming hard:
// the random numbers of dropout, and the moving averages of batch normalization and of Adam.
var withTrainer = training{
	name: "trainer",
	args: []string{"--mpi", "pmix", "--cpus-per-task", "1"},
	cells: []string{
		`!echo prepared`,
		`import (
	"crypto/sha256"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/trainer"
)

var hold = flag.Bool("hold", true, "wait in the middle of the first start")

// blobs are noisy images; the class is where the bright part is.
type blobs struct{}

func (blobs) Name() string { return "blobs" }
func (blobs) Len() int     { return 200 }

func (blobs) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	var images []float32
	var classes []int32
	for _, index := range indices {
		random := rand.New(rand.NewPCG(7, uint64(index)))
		class := random.IntN(4)
		for pixel := range 64 {
			value := random.Float32() / 2
			if pixel/16 == class {
				value += 0.5
			}
			images = append(images, value)
		}
		classes = append(classes, int32(class))
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, len(indices), 8, 8, 1)},
		[]*tensors.Tensor{tensors.FromFlatDataAndDimensions(classes, len(indices), 1)}, nil
}

func net(scope *model.Scope, x *graph.Node) *graph.Node {
	x = layers.Convolution(scope.In("conv"), x).Channels(4).KernelSize(3).PadSame().Done()
	x = norm.BatchNorm(scope.In("norm"), x, -1).Done()
	x = activation.Relu(x)
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = layers.DropoutStatic(scope.In("dropout"), x, 0.2)
	return layers.Dense(scope.In("logits"), x, true, 4)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// holder waits in the middle of the first start, until the process is told to stop.
func holder() trainer.Callback {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1, syscall.SIGTERM)
	return trainer.Callback{Name: "holder", BatchEnd: func(e *trainer.Event) error {
		if *hold && e.Step == 25 && os.Getenv("GONBATCH_RESTARTS") == "0" {
			fmt.Println("holding")
			<-told
		}
		return nil
	}}
}

// digest is a hash of all bits of a model's variables.
func digest(store *model.Store) string {
	var all []string
	for v := range store.IterVariables() {
		if v.HasValue() && !strings.HasPrefix(v.Path(), "/metrics") {
			check(v.MustValue().ConstBytes(func(data []byte) { all = append(all, fmt.Sprintf("%s %x", v.Path(), sha256.Sum256(data))) }))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}`,
		`%%
world, err := distributed.Init()
check(err)
defer world.Close()
task := trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done())
t, err := trainer.New(world, trainer.Config{
	MaxEpochs: 3, BatchSize: 10, Seed: 5, LogEvery: 10, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{EverySteps: 10},
}, task, trainer.WithCallbacks(holder()))
check(err)
check(t.Fit(context.Background(), blobs{}, nil))
if world.IsMain() {
	check(os.WriteFile(filepath.Join(os.Getenv("GONBATCH_RUN_DIR"), "final"), []byte(digest(t.Store())), 0o644))
}`,
	},
	final: func(t *testing.T, run rundir.Dir) string {
		t.Helper()
		return read(t, filepath.Join(run.Path(), "final"))
	},
}
