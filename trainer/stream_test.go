package trainer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/lane"
	"gonbatch/distributed/ranktest"
	"gonbatch/logger"
	"gonbatch/trainer"
)

// blobStream is a stream of blobs, in parts of these lengths. Its examples are numbers of blobs.
type blobStream struct {
	parts  []int
	torn   int       // The number of the blob that can't be read; 0: none.
	decode func(int) // Called for each blob that is decoded; may be nil.
}

func (s blobStream) Name() string { return "blob stream" }
func (s blobStream) Parts() int   { return len(s.parts) }

func (s blobStream) Read(part, pass, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := skip; i < s.parts[part]; i++ {
			number, err := 1000*part+100*(pass%3)+i, error(nil)
			if s.torn > 0 && number == s.torn {
				err = errors.New("torn")
			}
			if !yield(number, err) {
				return
			}
		}
	}
}

func (s blobStream) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	numbers := make([]int, len(examples))
	for i, number := range examples {
		if numbers[i] = number.(int); s.decode != nil {
			s.decode(numbers[i])
		}
	}
	return ranktest.Blobs(1 << 30).Batch(numbers)
}

// noise makes each image another one, by its random numbers.
func noise(im data.Image, random *rand.Rand) error {
	for i := range im.Pixels {
		im.Pixels[i] += float32(random.NormFloat64())
	}
	return nil
}

// TestStream: a training on a stream, also one that is augmented, is the same, bit for bit, with
// any number of workers, and when it is killed and resumes.
func TestStream(t *testing.T) { everywhere(t, testStream) }

func testStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8)) // All ranks draw the same.
	for i := range 4 {
		parts := make([]int, 1+rng.IntN(15))
		for i := range parts {
			parts[i] = rng.IntN(40) * rng.IntN(2)
		}
		parts[rng.IntN(len(parts))] += 2
		stream := blobStream{parts: parts}
		open := func() data.Dataset {
			ds, err := data.FromStream(stream, data.StreamConfig{Examples: 90, Buffer: 50, Lanes: 6})
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				return data.Augment(ds, 9, noise)
			}
			return ds
		}
		c := trainer.Config{
			MaxEpochs: 3, BatchSize: 12, AccumulateGradBatches: 1 + i%2, Seed: rng.Uint64N(9), Shuffle: new(i != 3), Loggers: []string{"none"}, Loader: trainer.LoaderConfig{Workers: -1},
		}
		want, _ := newTrainer(t, c, blobTask(smallNet))
		if err := want.Fit(t.Context(), open(), ranktest.Blobs(20)); err != nil {
			t.Fatalf("%v: %v", parts, err)
		}
		c.Checkpoint = trainer.CheckpointConfig{EverySteps: 1 + rng.IntN(4), Dir: t.TempDir()}
		for _, kill := range []int64{1 + rng.Int64N(7), 8 + rng.Int64N(3), 0} {
			c.Loader = trainer.LoaderConfig{Workers: 1 + rng.IntN(4), Prefetch: 1 + rng.IntN(5)}
			tr, _ := newTrainer(t, c, blobTask(smallNet), killAt(kill))
			if err := tr.Fit(t.Context(), open(), ranktest.Blobs(20)); kill > 0 && !errors.Is(err, errKilled) || kill == 0 && err != nil {
				t.Fatalf("%v, killed after step %d: %v", parts, kill, err)
			}
			if kill == 0 {
				compareWeights(t, weights(t, tr.Store()), weights(t, want.Store()))
			}
		}
	}
}

// TestStreamOverRanks: the ranks have the examples of all lanes, each once, and the same batches as
// a single rank, also if most parts are empty.
func TestStreamOverRanks(t *testing.T) { everywhere(t, testStreamOverRanks) }

func testStreamOverRanks(t *testing.T) {
	for _, parts := range [][]int{{7, 30, 0, 12, 5, 9, 21}, {0, 0, 1, 0, 0, 0, 0, 0, 2}, {0, 3}, {1}} {
		testPartsOverRanks(t, parts)
	}
}

func testPartsOverRanks(t *testing.T, parts []int) {
	var mu sync.Mutex
	var mine []int
	stream := blobStream{parts: parts, decode: func(number int) {
		mu.Lock()
		defer mu.Unlock()
		mine = append(mine, number)
	}}
	const batch, lanes, batches = 12, 6, 10
	ds, err := data.FromStream(stream, data.StreamConfig{Examples: 5 * batch, Buffer: 60, Lanes: lanes})
	if err != nil {
		t.Fatal(err)
	}
	tr, _ := newTrainer(t, trainer.Config{MaxEpochs: 2, BatchSize: batch, Seed: 4, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}, blobTask(plainNet))
	if err := tr.Fit(t.Context(), ds, nil); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(mine)
	if err != nil {
		t.Fatal(err)
	}
	ranks, err := tr.World().AllGather(text)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []int
	for _, text := range ranks {
		var numbers []int
		if err := json.Unmarshal(text, &numbers); err != nil {
			t.Fatal(err)
		}
		if len(numbers) != batches*batch/len(ranks) {
			t.Errorf("a rank has %d examples", len(numbers))
		}
		got = append(got, numbers...)
	}
	for i := range lanes {
		l := lane.New(stream, lane.Config{Lanes: lanes, Block: 10, Seed: 4}, lane.Position{Lane: i})
		for range batches * batch / lanes {
			number, err := l.Next()
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, number.(int))
		}
		l.Close()
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestStreamRefuses: errors of a stream, and settings that don't fit one.
func TestStreamRefuses(t *testing.T) {
	plain := data.StreamConfig{Examples: 24, Buffer: 12}
	tests := []struct {
		name   string
		stream data.Stream
		set    data.StreamConfig
		config trainer.Config
		want   string
	}{
		{"torn", blobStream{parts: []int{50}, torn: 13}, data.StreamConfig{Examples: 24, Buffer: 1}, trainer.Config{}, "epoch 1, batch 2, rank 0: distributed: load the stream blob stream: example 13 of part 0 (pass 0): torn"},
		{"empty", blobStream{parts: []int{0, 0}}, plain, trainer.Config{}, "epoch 1, batch 1, rank 0: distributed: load the stream blob stream: the stream has no examples: Read yields none in its 2 parts"},
		{"panic while reading", panicking{blobStream{parts: []int{5}}}, plain, trainer.Config{}, "load the stream blob stream: example 0 of part 0 (pass 0): panic: oh"},
		{"panic while decoding", blobStream{parts: []int{50}, decode: panicAt(13)}, plain, trainer.Config{}, "epoch 1, batch 2, rank 0: distributed: decode example 13 of part 0 (pass 0) of the stream blob stream: panic: ah"},
		{"lanes", blobStream{parts: []int{5}}, data.StreamConfig{Examples: 24, Lanes: 5}, trainer.Config{}, "5 lanes: their number must divide the batch size of 12"},
		{"a short epoch", blobStream{parts: []int{5}}, data.StreamConfig{Examples: 11}, trainer.Config{}, "an epoch of 11 examples is less than one batch of 12"},
		{"overfit", blobStream{parts: []int{5}}, plain, trainer.Config{OverfitBatches: 1}, "overfit_batches: 1, but blob stream is a stream"},
	}
	for _, tt := range tests {
		for _, tt.config.Loader.Workers = range []int{-1, 3} {
			t.Run(fmt.Sprintf("%s, workers %d", tt.name, tt.config.Loader.Workers), func(t *testing.T) {
				ds, err := data.FromStream(tt.stream, tt.set)
				if err != nil {
					t.Fatal(err)
				}
				tt.config.BatchSize = 12
				tr, _ := newTrainer(t, tt.config, blobTask(plainNet))
				if err := tr.Fit(t.Context(), ds, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		}
	}
	ds, err := data.FromStream(blobStream{parts: []int{5}}, plain)
	if err != nil {
		t.Fatal(err)
	}
	tr, _ := newTrainer(t, trainer.Config{}, blobTask(plainNet))
	if _, err := tr.Validate(t.Context(), ds); err == nil || !strings.Contains(err.Error(), "the stream blob stream has no numbered examples") {
		t.Errorf("validation: %v", err)
	}
}

func panicAt(number int) func(int) {
	return func(other int) {
		if other == number {
			panic("ah")
		}
	}
}

// TestStreamIsRepaired: a training that an example ends saves what it has trained before, and has
// the weights of an undisturbed one when it resumes after the example is repaired.
func TestStreamIsRepaired(t *testing.T) {
	fit := func(dir string, decode func(int)) (*trainer.Trainer, error) {
		ds, err := data.FromStream(blobStream{parts: []int{90}, decode: decode}, data.StreamConfig{Examples: 60, Buffer: 24})
		if err != nil {
			t.Fatal(err)
		}
		c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Seed: 3, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
		tr, _ := newTrainer(t, c, blobTask(smallNet))
		return tr, tr.Fit(t.Context(), ds, nil)
	}
	dir := t.TempDir()
	if _, err := fit(dir, panicAt(41)); err == nil || !strings.Contains(err.Error(), "decode example 41 of part 0 (pass 0) of the stream blob stream: panic: ah; the training up to step 3 is saved") {
		t.Fatalf("got %v", err)
	}
	got, err := fit(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := fit(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	compareWeights(t, weights(t, got.Store()), weights(t, want.Store()))
}

type panicking struct{ blobStream }

func (panicking) Read(int, int, int) iter.Seq2[any, error] { panic("oh") }

// rewinding counts how often a logger is told where a training resumes.
type rewinding struct {
	*logger.Multi
	times *int
}

func (l *rewinding) Rewind(int64) error {
	*l.times++
	return nil
}

// TestStreamChanges: a training doesn't resume in other lanes, or with another buffer. Then nothing
// that was logged is dropped.
func TestStreamChanges(t *testing.T) {
	times := 0
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{EverySteps: 1, Dir: t.TempDir()}}
	fit := func(c trainer.Config, set data.StreamConfig, kill int64) error {
		ds, err := data.FromStream(blobStream{parts: []int{50, 60}}, set)
		if err != nil {
			t.Fatal(err)
		}
		tr, _ := newTrainer(t, c, blobTask(plainNet), killAt(kill), trainer.WithLogger(logger.NewMulti(logger.MultiOptions{}, &rewinding{logger.NewMulti(logger.MultiOptions{}), &times})))
		return errors.Join(tr.Fit(t.Context(), ds, nil), tr.Logger().Close())
	}
	first := data.StreamConfig{Examples: 48, Buffer: 24, Lanes: 2}
	if err := fit(c, first, 5); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	times = 0
	for _, other := range []data.StreamConfig{{Examples: 48, Buffer: 24, Lanes: 3}, {Examples: 48, Buffer: 48, Lanes: 2}} {
		if err := fit(c, other, 0); err == nil || !strings.Contains(err.Error(), "was read in 2 lanes with a buffer of 12 each, now these are") {
			t.Errorf("%+v: %v", other, err)
		}
	}
	if times > 0 {
		t.Error("the loggers were rewound by a training that was refused")
	}
	if err := fit(c, first, 0); err != nil || times != 1 {
		t.Errorf("%v, and the loggers were rewound %d times, want once", err, times)
	}
}

// TestStreamOnOtherRanks: a training on an augmented stream that one rank has begun, and three
// ranks end, has the weights of one that stays on one rank.
func TestStreamOnOtherRanks(t *testing.T) {
	fit := func(dir string, kill int64) *trainer.Trainer {
		ds, err := data.FromStream(blobStream{parts: []int{30, 8, 41, 17, 5, 26, 12}}, data.StreamConfig{Examples: 60, Buffer: 60, Lanes: 6})
		if err != nil {
			t.Fatal(err)
		}
		c := trainer.Config{MaxEpochs: 3, BatchSize: 12, Seed: 2, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{EverySteps: 1, Dir: dir}}
		tr, out := newTrainer(t, c, sgdTask(0.1), killAt(kill))
		if err := tr.Fit(t.Context(), data.Augment(ds, 6, noise), nil); kill > 0 && !errors.Is(err, errKilled) || kill == 0 && err != nil {
			t.Fatal(err)
		}
		if resumes := strings.Contains(out.String(), "training resumes after step 6"); ranktest.InRank() && tr.World().IsMain() && !resumes {
			t.Errorf("it does not resume:\n%s", out)
		}
		return tr
	}
	if ranktest.InRank() {
		if tr := fit(os.Getenv("CHECKPOINTS"), 0); tr.World().IsMain() {
			writeGob(t, os.Getenv("OUT"), floats(t, tr))
		}
		return
	}
	dir, out := t.TempDir(), tempFile(t, "weights")
	fit(dir, 7)
	if log, err := ranktest.Start(t, ranktest.Torchrun, 3, []string{"GONBATCH_DEVICES=1", "CHECKPOINTS=" + dir, "OUT=" + out}); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	var got []float64
	readGob(t, out, &got)
	want := floats(t, fit(t.TempDir(), 0))
	if d := distance(got, want); d > 1e-5 || len(got) != len(want) {
		t.Errorf("the weights differ by %g", d)
	}
	if d := distance(floats(t, fit(dir, 0)), want); d > 1e-5 {
		t.Errorf("the checkpoint of three ranks has weights that differ by %g", d)
	}
}
