package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
)

// TestStaticLibrary: a program is linked with C's linker if Go's can't link it, and again when a
// library has changed, also if the program's own text is the same.
func TestStaticLibrary(t *testing.T) {
	c := newCell(t)
	near, source := filepath.Join(c.opts.Dir, "../near"), filepath.Join(t.TempDir(), "x.c")
	c.write(t, "../near/near.go", "package near\n\n// #cgo LDFLAGS: ${SRCDIR}/libx.a\n// int x(void);\nimport \"C\"\n\nfunc X() int { return int(C.x()) }\n")
	c.write(t, "main.go", "package main\n\nimport \"example.com/near\"\n\nfunc main() { print(near.X()) }\n")
	for i, want := range []string{"0", "0", "0", "3"} {
		if i != 1 && i != 2 {
			if err := os.WriteFile(source, fmt.Appendf(nil, "int x(void) { return %d; }\n", i), 0o600); err != nil {
				t.Fatal(err)
			}
			make := exec.Command("sh", "-c", "cc -c x.c && rm -f \"$0/libx.a\" && ar rcs \"$0/libx.a\" x.o", near)
			make.Dir = filepath.Dir(source)
			if out, err := bounded.CombinedOutput(make); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		if got, _ := c.run(t); got != want {
			t.Errorf("run %d put out %q, want %q", i, got, want)
		}
	}
}
