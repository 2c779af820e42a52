package pjrt

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/gomlx/compute"
)

// Backend makes a backend of the loaded plugin refuse programs whose collectives would not take place. AllReduceSum and AllReduceMean need it: a placeholder that
// stays in a program does nothing, and each rank would train alone.
func Backend(inner compute.Backend) compute.Backend { return &backend{inner} }

// backend counts the placeholders of each program in two ways: as the graph makes them, and as they are replaced in the program's text.
type backend struct{ compute.Backend }

// Builder implements compute.Backend.
func (b *backend) Builder(name string) compute.Builder {
	inner := b.Backend.Builder(name)
	if inner == nil {
		return nil // The backend was finalized, and GoMLX says so.
	}
	return &builder{Builder: inner}
}

type builder struct {
	compute.Builder
	placeholders int
}

// NewFunction implements compute.Builder.
func (b *builder) NewFunction(name string) (compute.Function, error) {
	if strings.HasPrefix(name, targetName) {
		b.placeholders++
	}
	return b.Builder.NewFunction(name)
}

// compiling lets one program with collectives be compiled at a time, so that what is replaced meanwhile is its own.
var compiling sync.Mutex

// Compile implements compute.Builder.
func (b *builder) Compile() (compute.Executable, error) {
	if b.placeholders == 0 {
		return b.Builder.Compile()
	}
	compiling.Lock()
	defer compiling.Unlock()
	before := replaced.Load()
	executable, err := b.Builder.Compile()
	if err != nil {
		return nil, err
	}
	if n := int(replaced.Load() - before); n != b.placeholders {
		executable.Finalize()
		return nil, &IncompleteError{Program: b.Name(), Placeholders: b.placeholders, Replaced: n}
	}
	return executable, nil
}

// IncompleteError says that a program has collectives that would not take place.
type IncompleteError struct {
	Program string
	// Placeholders is how many collectives the graph has, and Replaced how many of them the compiled program would run.
	Placeholders, Replaced int
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("pjrt: program %q has %d all-reduces, but %d were put into what XLA compiles, so the ranks would train apart: gonbatch does not know the form in which go-xla %s writes programs; "+
		"use the version of go-xla in gonbatch's go.mod", e.Program, e.Placeholders, e.Replaced, goXLAVersion())
}

// goXLAVersion is that of the module in this program; empty if it is not known.
func goXLAVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/gomlx/go-xla" {
			if m.Replace != nil {
				m = m.Replace
			}
			return m.Version
		}
	}
	return ""
}
