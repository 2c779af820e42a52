package device

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Describe lists the first of the GPUs that the rank computes on, such as "GPU 1 (NVIDIA H100 80GB
// HBM3)". It returns "" if the rank doesn't compute on GPUs.
func (f Facts) Describe(root string, devices int) string {
	if f.Platform != cuda {
		return ""
	}
	used, err := f.use()
	if err != nil {
		return ""
	}
	models := models(root)
	var parts []string
	for _, name := range used[:min(devices, len(used))] {
		part := "GPU " + name
		if model := models[name]; model != "" {
			part += " (" + model + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// models returns the GPUs' models, by their numbers in /dev, as far as NVIDIA's driver reports
// them.
func models(root string) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information")) // The pattern is well formed.
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if minor := field(text, "Device Minor"); minor != "" {
			found[minor] = field(text, "Model")
		}
	}
	return found
}

// field returns the value of a line such as "Model:   NVIDIA H100".
func field(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

var driverVersion = regexp.MustCompile(`Kernel Module.*?\s([0-9]+(?:\.[0-9]+)+)\s`)

// Driver returns the version of NVIDIA's driver, or "" if there is none.
func Driver(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "proc/driver/nvidia/version"))
	if err != nil {
		return ""
	}
	if m := driverVersion.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

var (
	ncclLibrary = regexp.MustCompile(`/\S*libnccl\.so\S*`)
	ncclVersion = regexp.MustCompile(`NCCL version ([0-9][0-9.]*(?:\+cuda[0-9.]+)?)`)
)

// NCCL returns the version of the NCCL library that this process has opened, or "" if it has opened
// none. GPUs communicate through NCCL.
func NCCL(root string) (string, error) {
	maps, err := os.ReadFile(filepath.Join(root, "proc/self/maps"))
	if err != nil {
		return "", err
	}
	path := ncclLibrary.Find(maps)
	if path == nil {
		return "", nil
	}
	library, err := os.Open(string(path))
	if err != nil {
		return "", err
	}
	defer library.Close() //nolint:errcheck // only read
	return versionIn(library)
}

// versionIn finds the version in a library, which may have hundreds of megabytes.
func versionIn(library io.Reader) (string, error) {
	const block, overlap = 1 << 20, 64
	in := bufio.NewReaderSize(library, block+overlap)
	for {
		part, err := in.Peek(block + overlap)
		// A match that begins in the overlap is complete in the next part.
		if at := ncclVersion.FindSubmatchIndex(part); at != nil && (at[0] < block || err == io.EOF) {
			return string(part[at[2]:at[3]]), nil
		}
		if err == io.EOF {
			return "of an unknown version", nil
		}
		if err != nil {
			return "", err
		}
		if _, err := in.Discard(block); err != nil {
			return "", err
		}
	}
}
