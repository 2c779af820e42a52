package pjrt

/*
#include <stdlib.h>
#include "keep.h"
*/
import "C"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unsafe"

	"gonbatch/distributed/affinity"
	"gonbatch/internal/compilecache"
)

// compilerVariables are the variables that affect how XLA, and the libraries that it opens,
// compile.
var compilerVariables = []string{
	"XLA_FLAGS", "NPROC", "TF_XLA_FLAGS", "NVIDIA_TF32_OVERRIDE", "TF_CUDNN_DETERMINISTIC", "TF_CUDNN_USE_AUTOTUNE", "LD_LIBRARY_PATH", "CUDA_HOME",
}

// unkept are parts of XLA options that make a compilation read or write other files too, so that a
// cached program can't replace it.
var unkept = []string{"xla_dump", "_dump_", "_profile_file", "autotune_results", "autotune_cache"}

// driverFile has the version of NVIDIA's driver.
const driverFile = "/proc/driver/nvidia/version"

// keyOf returns the key of a program that is compiled for a client with these options. It reports
// false if the program must not be cached.
func keyOf(client unsafe.Pointer, program, options []byte) (key compilecache.Key, ok bool) {
	surroundings, err := theSurroundings()
	if err != nil || unkeepable(variable("XLA_FLAGS")) || variable("XLA_DEBUG_OPTIONS") != "" {
		return key, false
	}
	described := C.gb_describe(client)
	if described == nil {
		return key, false
	}
	defer C.free(unsafe.Pointer(described))
	return compilecache.NewHash().
		Add("surroundings", surroundings).
		Add("client", []byte(C.GoString(described))).
		Add("options", options).
		Add("plainly", plainly()).
		Add("counted CPUs", fmt.Append(nil, countedCPUs(program))).
		Add("program", canonical(program)).Key(), true
}

// unkeepable reports whether XLA's flags request more than a compiled program. Flags that don't
// begin with a dash are the name of a file.
func unkeepable(flags string) bool {
	flags = strings.TrimSpace(flags)
	for _, part := range unkept {
		if strings.Contains(flags, part) {
			return true
		}
	}
	return flags != "" && !strings.HasPrefix(flags, "-")
}

// theSurroundings is what affects all programs of this process, as XLA found it when it compiled
// the first one.
var theSurroundings = sync.OnceValues(func() ([]byte, error) {
	cpu, err := compilecache.Machine()
	if err != nil {
		return nil, err
	}
	cpus, err := affinity.Allowed()
	if err != nil {
		return nil, err
	}
	plugin, err := pluginFacts()
	if err != nil {
		return nil, err
	}
	driver, err := os.ReadFile(driverFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CPUs %d\n%s\nplugin %s\ndriver %s\n", len(cpus), cpu, plugin, driver)
	for _, name := range compilerVariables {
		fmt.Fprintf(&b, "%s=%q\n", name, variable(name))
	}
	return []byte(b.String()), nil
})

// variable returns an environment variable as XLA sees it: from C's environment, which the program
// may have changed.
func variable(name string) string {
	cName := C.CString(name)
	defer C.free(unsafe.Pointer(cName))
	return C.GoString(C.getenv(cName))
}

// pluginFacts identifies the loaded plugin by its size, its time, and its first and last bytes.
// Hashing hundreds of megabytes would take longer than loading a program.
func pluginFacts() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for _, path := range loaded {
		return fileFacts(path)
	}
	return "", errors.New("no XLA plugin is loaded")
}

// endSize is the number of bytes read from each end of a plugin.
const endSize = 64 << 10

func fileFacts(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, offset := range []int64{0, max(0, info.Size()-endSize)} {
		if _, err := io.Copy(sum, io.NewSectionReader(f, offset, endSize)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d bytes, %d, %x", info.Size(), info.ModTime().UnixNano(), sum.Sum(nil)), nil
}
