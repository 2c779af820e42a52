// Package sharedlib checks shared libraries without loading them, so that a program without C code
// can refuse one with a reason that dlopen would not give.
//
//	err := sharedlib.Check("/usr/lib/libdnnl.so.3", sharedlib.Has("dnnl_version", "oneDNN"))
//	// libdnnl.so.3 is for the processor EM_AARCH64, this machine has EM_X86_64
//
// On systems without ELF it checks nothing. It does not find libraries: the loader's order of
// folders is in package submit/loader.
package sharedlib

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/semver"
)

// machines maps Go's names of architectures to ELF's.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Symbol is a function that a library must have. Kind is what a library with it is, with its
// article: "a PJRT plugin".
type Symbol struct{ Name, Kind string }

// Has returns a Symbol.
func Has(name, kind string) Symbol { return Symbol{name, kind} }

// Check returns an error if the library at path is for another processor, lacks the symbol, or
// needs a newer glibc than this machine's. It doesn't check the other libraries that it needs.
func Check(path string, symbol Symbol) error { return checkFor(path, symbol, ownGLibC()) }

// checkFor is Check for a machine with this version of glibc; "" is an unknown one, which has all.
func checkFor(path string, symbol Symbol, glibc string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is not a shared library: %w", path, err)
	}
	defer f.Close()
	if want, ok := machines[runtime.GOARCH]; ok && f.Machine != want {
		return fmt.Errorf("%s is for the processor %v, this machine has %v", path, f.Machine, want)
	}
	if err := checkSymbol(f, path, symbol); err != nil {
		return err
	}
	return checkGLibC(f, path, glibc)
}

func checkSymbol(f *elf.File, path string, symbol Symbol) error {
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("%s: read its symbols: %w", path, err)
	}
	for _, s := range symbols {
		if s.Name == symbol.Name && s.Section != elf.SHN_UNDEF {
			return nil
		}
	}
	return fmt.Errorf("%s is not %s: it does not export %s", path, symbol.Kind, symbol.Name)
}

// checkGLibC compares the version that the library needs with the machine's.
func checkGLibC(f *elf.File, path, have string) error {
	if f.SectionByType(elf.SHT_GNU_VERNEED) == nil {
		return nil // It needs no particular version.
	}
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

// ownGLibC returns the C library's version, without linking it; "" if it is not known.
var ownGLibC = sync.OnceValue(func() string {
	out, err := exec.Command("getconf", "GNU_LIBC_VERSION").Output()
	if err != nil {
		return ""
	}
	version, _ := strings.CutPrefix(strings.TrimSpace(string(out)), "glibc ")
	return version
})

// common are the beginnings of the names of libraries that come with every Linux, or with GCC.
var common = []string{"libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "ld-linux", "libgcc_s.so.", "libstdc++.so.", "libgomp.so."}

// Needs lists the sonames of the libraries that the library at path needs, without those that come
// with Linux or GCC. It may find them only from its own folder; if there are none, a copy works.
func Needs(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s is not a shared library: %w", path, err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: read what it needs: %w", path, err)
	}
	return slices.DeleteFunc(needed, isCommon), nil
}

func isCommon(soname string) bool {
	for _, prefix := range common {
		if strings.HasPrefix(soname, prefix) {
			return true
		}
	}
	return false
}
