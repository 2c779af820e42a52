package pjrt

import "C"

import (
	"regexp"
	"sync"
	"unsafe"
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

// updating matches a floating-point variable that a program changes in place. The others are states
// of random numbers, or counters.
var updating = regexp.MustCompile(`tensor<(?:\d+x)+b?f\d+> \{[^}]*` + shareMark)

// compiled notes a program.
func (u *updates) compiled(executable unsafe.Pointer, code []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, executable) // It may be where another was.
	if updating.Match(code) {
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
