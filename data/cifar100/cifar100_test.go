package cifar100

import (
	"fmt"
	"strings"
	"testing"
)

// The archive has a SHA-256, and its addresses are folders.
func TestIdentity(t *testing.T) {
	if len(set.Archive.SHA256) != 64 || !strings.HasSuffix(set.Archive.Addresses[0], "/") {
		t.Errorf("%+v", set.Archive)
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/cifar100
}
