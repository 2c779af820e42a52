package plugin

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"
)

// entry is the function that makes a library a PJRT plugin.
const entry = "GetPjrtApi"

// machines maps Go's names of architectures to ELF's.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// check refuses a library that can't be loaded here, with a reason that dlopen would not give. On
// systems without ELF it checks nothing.
func check(path string) error { return checkAgainst(path, glibc()) }

// checkAgainst is check for a machine with this version of glibc ("": unknown).
func checkAgainst(path, glibc string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is not a shared library: %w", path, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if want, ok := machines[runtime.GOARCH]; ok && f.Machine != want {
		return fmt.Errorf("%s is for the processor %v, this machine has %v", path, f.Machine, want)
	}
	if err := checkEntry(f, path); err != nil {
		return err
	}
	return checkGlibc(f, path, glibc)
}

func checkEntry(f *elf.File, path string) error {
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("%s: read its symbols: %w", path, err)
	}
	for _, s := range symbols {
		if s.Name == entry && s.Section != elf.SHN_UNDEF {
			return nil
		}
	}
	return fmt.Errorf("%s is not a PJRT plugin: it does not export %s", path, entry)
}

// checkGlibc compares the version that the library needs with the machine's.
func checkGlibc(f *elf.File, path, have string) error {
	needs, err := f.DynamicVersionNeeds()
	if err != nil {
		return fmt.Errorf("%s: read what it needs: %w", path, err)
	}
	for _, lib := range needs {
		for _, need := range lib.Needs {
			want, ok := strings.CutPrefix(need.Dep, "GLIBC_")
			if ok && have != "" && semver.Compare("v"+want, "v"+have) > 0 {
				return fmt.Errorf("%s needs glibc %s, this machine has %s", path, want, have)
			}
		}
	}
	return nil
}

// glibc returns the C library's version, without linking it; "" if it is not known.
func glibc() string {
	out, err := exec.Command("getconf", "GNU_LIBC_VERSION").Output()
	if err != nil {
		return ""
	}
	version, _ := strings.CutPrefix(strings.TrimSpace(string(out)), "glibc ")
	return version
}
