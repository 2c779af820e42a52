package assist

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// vanishing is a go command that creates files while it runs and then removes them, as if a cell
// were built meanwhile.
const vanishing = `#!/bin/sh
files="gonbatch__show.go gonbatch__keep.go gonbatch__timeit.go gonbatch__devices.go main.go other.go main_test.go"
for file in $files; do
  printf 'package main\n' >'%[1]s'/$file
done
'%[2]s' "$@"
code=$?
for file in $files; do
  rm -f '%[1]s'/$file
done
exit $code
`

// TestVanishingFiles: questions are answered, whatever files a cell's build creates and removes in
// the module's folder.
func TestVanishingFiles(t *testing.T) {
	m := newModule(t)
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "go"), fmt.Appendf(nil, vanishing, m.dir, goCommand), 0o755); err != nil {
		t.Fatal(err)
	}
	m.opts.Environ = append(m.opts.Environ, "PATH="+bin+":"+os.Getenv("PATH"))
	for i, path := range []string{"container/list", "container/ring", "text/template"} {
		// A new import makes gopls load the packages again.
		text, err := m.Inspect(t.Context(), fmt.Sprintf("import \"fmt\"\nimport _ %q\n%%%%\nfmt.Println", path), 37+len(path))
		if err != nil || text == "" {
			t.Errorf("question %d: %q, %v", i+1, text, err)
		}
	}
}
