package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing/fstest"

	"gonbatch/internal/fetch"
)

func ExampleFile() {
	site := fstest.MapFS{"greeting.txt": {Data: []byte("hello")}}
	server := httptest.NewServer(http.FileServerFS(site))
	defer server.Close()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder

	path := filepath.Join(dir, "greeting.txt")
	err = fetch.File(context.Background(), fetch.Source{
		URLs:   []string{server.URL + "/greeting.txt"},
		SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
		Size:   5,
	}, path, fetch.Options{})
	text, _ := os.ReadFile(path)
	fmt.Println(string(text), err)
	// Output: hello <nil>
}
