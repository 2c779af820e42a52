package assist

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestVanishingFiles: whatever a cell's build puts into the module's folder, rewrites and takes away meanwhile, questions are answered.
func TestVanishingFiles(t *testing.T) {
	m := newModule(t)
	stop := make(chan struct{})
	var builds sync.WaitGroup
	defer builds.Wait()
	defer close(stop)
	for _, name := range []string{"gonbatch__show.go", "gonbatch__keep.go", "main.go", "other.go", "main_test.go"} {
		builds.Go(func() {
			file := filepath.Join(m.dir, name)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				text := fmt.Sprintf("package main\n\nfunc of_%d_%x() {}\n", i, name)
				if i%3 == 2 {
					text = "packa" // as seen by who reads a file that is being written
				}
				_ = os.WriteFile(file, []byte(text), 0o644)
				time.Sleep(time.Millisecond) // questions need the processor, too
				_ = os.Remove(file)
			}
		})
	}
	for i := range 8 {
		// New imports make gopls load the packages again.
		path := []string{"container/list", "container/ring", "text/template", "net/http", "go/ast", "encoding/xml"}[i%6]
		write(t, filepath.Join(m.dir, "go.mod"), fmt.Sprintf("module session\n\ngo 1.26\n\n// %d\nrequire example.com/near v0.0.0\n\nreplace example.com/near => ../near\n", i))
		m.server.look()
		text, err := m.Inspect(t.Context(), fmt.Sprintf("import \"fmt\"\nimport _ %q\n%%%%\nfmt.Println", path), 37+len(path))
		if err != nil || text == "" {
			t.Errorf("question %d: %q, %v", i, text, err)
		}
	}
}

// look makes the next question look at the disk.
func (s *server) look() {
	if s != nil {
		s.disk.looked = s.disk.looked.Add(-watchPause)
	}
}
