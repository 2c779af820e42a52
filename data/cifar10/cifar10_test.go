package cifar10

import (
	"fmt"
	"strings"
	"testing"
)

// The sizes are those that the dataset's page gives: 60,000 images, and an archive with a SHA-256.
func TestIdentity(t *testing.T) {
	images := 0
	for _, f := range append(set.Train, set.Test...) {
		images += f.Images
	}
	if images != 60000 || len(set.Archive.SHA256) != 64 || !strings.HasSuffix(set.Archive.Addresses[0], "/") {
		t.Errorf("%d images, %+v", images, set.Archive)
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/cifar10
}
