package mnist

import (
	"fmt"
	"testing"

	"gonbatch/data/idx"
)

func TestIdentities(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range set.Files() {
		for _, sum := range []string{f.SHA256, f.GzSHA256} {
			if len(sum) != 64 || seen[sum] {
				t.Errorf("%s: SHA-256 %q is malformed or appears twice", f.Name, sum)
			}
			seen[sum] = true
		}
	}
	for f, n := range map[idx.File]int64{set.TrainImages: 16 + 60000*28*28, set.TrainLabels: 8 + 60000, set.TestImages: 16 + 10000*28*28, set.TestLabels: 8 + 10000} {
		if f.Size != n {
			t.Errorf("%s: %d bytes, want %d", f.Name, f.Size, n)
		}
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/mnist
}
