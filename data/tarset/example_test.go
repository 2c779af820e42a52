package tarset_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/tarset"
)

// A field of one's own: the length of the text in the member .txt.
func ExampleField() {
	dir, err := os.MkdirTemp("", "texts")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	var shard bytes.Buffer
	w := tar.NewWriter(&shard)
	for _, file := range [][2]string{{"a.cls", "1"}, {"a.txt", "hello"}, {"b.cls", "0"}, {"b.txt", "hi"}} {
		if err := w.WriteHeader(&tar.Header{Name: file[0], Size: int64(len(file[1])), Mode: 0o644}); err != nil {
			log.Fatal(err)
		}
		if _, err := w.Write([]byte(file[1])); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "texts-0.tar"), shard.Bytes(), 0o600); err != nil {
		log.Fatal(err)
	}

	length := func(s *tarset.Sample) (*tensors.Tensor, error) {
		text, err := s.Bytes("txt")
		return tensors.FromValue([]float32{float32(len(text))}), err
	}
	texts, err := tarset.Open(filepath.Join(dir, "texts-{0..0}.tar"), tarset.Config{Inputs: []tarset.Field{length}, Labels: []tarset.Field{tarset.Class()}})
	if err != nil {
		log.Fatal(err)
	}
	inputs, labels, err := texts.Batch([]int{1, 0})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(texts.Name(), texts.Len(), inputs[0].Value(), labels[0].Value())
	// Output: texts 2 [[2] [5]] [[0] [1]]
}
