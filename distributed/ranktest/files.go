package ranktest

import (
	"os"
	"syscall"
	"testing"
)

// Files are open files that leave the process no free file descriptor.
type Files struct {
	t    *testing.T
	open []*os.File
}

// UseUpFiles opens files until the process can open no more, of few. The end of the test resets the
// process's limit.
func UseUpFiles(t *testing.T) *Files {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 64
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
	files := &Files{t: t}
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return files
		}
		files.open = append(files.open, f)
	}
}

// CloseOne closes one of the files.
func (f *Files) CloseOne() {
	f.t.Helper()
	if err := f.open[0].Close(); err != nil {
		f.t.Error(err)
	}
	f.open = f.open[1:]
}

// CloseAll closes the other files.
func (f *Files) CloseAll() {
	f.t.Helper()
	for len(f.open) > 0 {
		f.CloseOne()
	}
}
