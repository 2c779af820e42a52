package cifar10

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The archive has a SHA-256, and each address has it.
func TestIdentity(t *testing.T) {
	if len(set.Archive.SHA256) != 64 || slices.ContainsFunc(set.Archive.URLs, func(url string) bool { return !strings.HasSuffix(url, "/"+set.Archive.Name) }) {
		t.Errorf("%+v", set.Archive)
	}
}

func ExampleDir() {
	fmt.Println(Dir(func(name string) string { return map[string]string{"GONBATCH_DATA": "/scratch/data"}[name] }))
	// Output: /scratch/data/cifar10
}
