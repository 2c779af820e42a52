package pjrt

import "C"

import (
	"slices"
	"strings"
	"sync"
	"unsafe"

	"gonbatch/distributed/stablehlo"
)

// updates are the programs that change variables, by what XLA has made of them.
type updates struct {
	mu sync.Mutex
	of map[unsafe.Pointer]*program
}

// program is one that changes variables.
type program struct {
	name  string
	times int // It has run.
}

// changesVariables reports whether a program changes floating-point variables in place. The others
// are states of random numbers, or counters.
func changesVariables(code []byte) bool {
	m, err := stablehlo.Parse(string(code))
	if err != nil || m.Main() == nil {
		return false
	}
	return slices.ContainsFunc(m.Main().Parameters, func(v stablehlo.Value) bool {
		dimensions, element, _ := stablehlo.Tensor(v.Type)
		return len(dimensions) > 0 && strings.Contains(element, "f") && strings.Contains(v.Attributes, shareMark)
	})
}

// compiled notes a program.
func (u *updates) compiled(executable unsafe.Pointer, code []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, executable) // It may be where another was.
	if changesVariables(code) {
		u.of[executable] = &program{name: moduleName(code)}
	}
}

// runs notes that a program runs. It returns how often it has; 0 if it changes no variables.
func (u *updates) runs(executable unsafe.Pointer) (name string, times int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.of[executable]
	if p == nil {
		return "", 0
	}
	p.times++
	return p.name, p.times
}

// gonbatchRuns is called by clients.c before a program of a pretence runs.
//
//export gonbatchRuns
func gonbatchRuns(executable unsafe.Pointer) {
	l, _ := world()
	p := l.(pretended)
	if name, times := p.runs(executable); times > 0 && p.Updates != nil {
		p.Updates(name, times)
	}
}
