package data_test

import (
	"bufio"
	"compress/gzip"
	"iter"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// lines is a stream of compressed files with a number in each line.
type lines []string

func (f lines) Name() string { return "lines" }
func (f lines) Parts() int   { return len(f) }

func (f lines) Read(part, _, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		file, err := os.Open(f[part])
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close() //nolint:errcheck // only read
		text, err := gzip.NewReader(file)
		if err != nil {
			yield(nil, err)
			return
		}
		scanner := bufio.NewScanner(text)
		for i := 0; scanner.Scan(); i++ {
			if i >= skip && !yield(scanner.Text(), nil) {
				return
			}
		}
		if err := scanner.Err(); err != nil {
			yield(nil, err)
		}
	}
}

func (f lines) Batch(examples []any) (inputs, labels []*tensors.Tensor, err error) {
	numbers := make([]float32, len(examples))
	for i, line := range examples {
		number, err := strconv.ParseFloat(line.(string), 32)
		if err != nil {
			return nil, nil, err
		}
		numbers[i] = float32(number)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(numbers, len(numbers), 1)}, nil, nil
}

// A stream of compressed files: lines.Read yields their lines, lines.Batch makes tensors of them.
func ExampleFromStream() {
	ds, err := data.FromStream(lines{"a.txt.gz", "b.txt.gz"}, data.StreamConfig{Examples: 100_000})
	if err != nil {
		panic(err)
	}
	_ = ds // The training set of Trainer.Fit.
}

func TestFromStreamRefuses(t *testing.T) {
	for _, tt := range []struct {
		stream data.Stream
		config data.StreamConfig
		want   string
	}{
		{lines{}, data.StreamConfig{Examples: 1}, "stream lines: it has 0 parts"},
		{lines{"a"}, data.StreamConfig{}, "Examples, after which an epoch ends, must be at least 1, got 0"},
		{lines{"a"}, data.StreamConfig{Examples: 1, Buffer: -1}, "can't be negative, got -1 and 0"},
		{lines{"a"}, data.StreamConfig{Examples: 1, Lanes: -2}, "can't be negative, got 10000 and -2"},
	} {
		if _, err := data.FromStream(tt.stream, tt.config); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
