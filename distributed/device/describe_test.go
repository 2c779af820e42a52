package device_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gonbatch/distributed/device"
)

// write creates a file below root.
func write(t *testing.T, root, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDescribe(t *testing.T) {
	root := t.TempDir()
	for minor, address := range []string{"0000:17:00.0", "0000:65:00.0"} {
		write(t, root, "proc/driver/nvidia/gpus/"+address+"/information",
			[]byte("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 57\nBus Location: \t "+address+"\nDevice Minor: \t "+string(rune('0'+minor))+"\n"))
	}
	tests := []struct {
		name  string
		facts device.Facts
		n     int
		want  string
	}{
		{"one of two", gpu(1, "n1", nil), 1, "GPU 1 (NVIDIA H100 80GB HBM3)"},
		{"its own", gpu(0, "n1", own(1)), 1, "GPU 1 (NVIDIA H100 80GB HBM3)"},
		{"a part of one", gpu(1, "n1", visible("MIG-aaaa")), 1, "GPU MIG-aaaa"},
		{"the first", gpu(0, "n1", func(f *device.Facts) { f.Size = 1 }), 1, "GPU 0 (NVIDIA H100 80GB HBM3)"},
		{"both", gpu(0, "n1", func(f *device.Facts) { f.Size = 1 }), 2, "GPU 0 (NVIDIA H100 80GB HBM3), GPU 1 (NVIDIA H100 80GB HBM3)"},
		{"none", gpu(0, "n1", cpu(none)), 1, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.facts.Describe(root, test.n); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDriver(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"open", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder)  Sun Jul 27 07:20:45 UTC 2025\nGCC version:  gcc version 12.3.0\n", "580.65.06"},
		{"closed", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n", "535.183.01"},
		{"another text", "no version\n", ""},
	}
	for _, test := range tests {
		root := t.TempDir()
		write(t, root, "proc/driver/nvidia/version", []byte(test.text))
		if got := device.Driver(root); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if got := device.Driver(t.TempDir()); got != "" {
		t.Errorf("no driver: %q", got)
	}
}

// TestNCCL: the version is that of the mapped library, wherever it is in the file.
func TestNCCL(t *testing.T) {
	for _, before := range []int{0, 100, 1<<20 - 10, 1 << 20, 1<<20 + 45, 1<<20 + 63, 3 << 20} {
		root := t.TempDir()
		library := write(t, root, "lib/libnccl.so.2.28", append(bytes.Repeat([]byte{7}, before), "\x00NCCL version 2.28.3+cuda13.0\x00"...))
		write(t, root, "proc/self/maps", []byte("7f0-7f1 r-xp 0 fd:00 12 /usr/lib/libc.so.6\n7f2-7f3 r-xp 0 fd:00 13                   "+library+"\n"))
		if got, err := device.NCCL(root); err != nil || got != "2.28.3+cuda13.0" {
			t.Errorf("after %d bytes: %q, %v", before, got, err)
		}
	}
	root := t.TempDir()
	write(t, root, "proc/self/maps", []byte("7f0-7f1 r-xp 0 fd:00 12 /usr/lib/libc.so.6\n"))
	if got, err := device.NCCL(root); err != nil || got != "" {
		t.Errorf("none is mapped: %q, %v", got, err)
	}
}
