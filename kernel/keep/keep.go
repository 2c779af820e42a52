package keep

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
)

// Vars maps the names of the variables to keep to pointers to them, or to functions that return
// such pointers. A function is defined on the line of its %keep, so that errors can name that line.
type Vars map[string]any

// program is the state of this process's kept variables.
var program struct {
	sync.Mutex
	// declared are the declarations that Load got.
	declared Declared
	// unread are the variables whose value could not be loaded.
	unread map[string]*unread
	// idle are the variables that the program doesn't use, and whose value stays as it is.
	idle map[string]bool
	// mappings are the memory of large values that were mapped.
	mappings []mapping
	// running are the variables of the running main.
	running Vars
	// sudden is set if the program ends without returning from main.
	sudden bool
}

// unread is a variable whose kept value could not be loaded.
type unread struct {
	err error
	// initial is the hash of the variable's value when main began.
	initial string
}

// Load gives each variable the value that an earlier program kept, unless its declaration has
// changed since. It runs before the program's own init functions. Values that need them are left to
// Retry.
func (v Vars) Load(declared Declared) {
	program.Lock()
	defer program.Unlock()
	program.declared, program.unread, program.idle, program.sudden = declared, map[string]*unread{}, map[string]bool{}, false
	p, err := findPlace()
	if err == nil && p.errors == "" && p.to != "" {
		err = v.refuse()
	}
	if err != nil {
		p.report(err)
		return
	}
	p.warnOfUnsaved(v.names())
	for _, name := range v.names() {
		if declared.unused(name) && p.has(name) {
			program.idle[name] = true
			continue
		}
		if err := p.load(name, v.value(name)); err != nil {
			program.unread[name] = &unread{err: err}
		}
	}
}

// Retry loads the values that Load could not, now that the program's init functions have run, and
// reports those that still can't be loaded.
func (v Vars) Retry() {
	program.Lock()
	defer program.Unlock()
	p, err := findPlace()
	if err != nil {
		return // Load has reported it.
	}
	for _, name := range v.names() {
		u := program.unread[name]
		if u == nil || u.initial != "" {
			continue
		}
		if u.err = p.load(name, v.value(name)); u.err == nil {
			delete(program.unread, name)
			continue
		}
		u.initial = hashOf(name, v.value(name))
		fmt.Fprintf(os.Stderr, "%%keep %s: %v: it has its initial value; the kept one stays until a program changes %s, or until %%keep -d %s\n", name, u.err, name, name)
	}
}

// Begin starts the program's main, which must defer save.
func (v Vars) Begin() (save func()) {
	v.Retry()
	program.Lock()
	defer program.Unlock()
	if p, err := findPlace(); err == nil {
		p.setOpen(slices.DeleteFunc(v.names(), func(name string) bool { return program.idle[name] }))
	}
	program.running = v
	return v.Save
}

// Save writes the variables' values for later programs. If a value can't be encoded, it reports an
// error that names the variable.
func (v Vars) Save() {
	program.Lock()
	defer program.Unlock()
	defer singleProcessor()()
	v.save()
}

func (v Vars) save() {
	p, failed := findPlace()
	if p.to == "" {
		return
	}
	for _, name := range v.names() {
		if program.idle[name] {
			failed = errors.Join(failed, p.forget(name))
			continue
		}
		err := v.saveOne(p, name)
		if program.sudden && errors.As(err, new(errPanic)) {
			fmt.Fprintf(os.Stderr, "%%keep %s: the value from before this program is kept: %v\n", name, err)
		} else if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%%keep %s%s: %w", name, line(v[name]), err))
		}
	}
	p.setOpen(nil)
	if failed != nil {
		p.report(failed)
	}
}

// saveOne saves a variable. A panic, as of a value that another goroutine is changing, must not
// lose the other variables.
func (v Vars) saveOne(p place, name string) (err error) {
	defer catch(&err, "saving it")
	return p.save(name, v.value(name))
}

func (v Vars) names() []string { return slices.Sorted(maps.Keys(v)) }

// value returns the variable with a name.
func (v Vars) value(name string) reflect.Value {
	pointer := v[name]
	if get, ok := pointer.(func() any); ok {
		pointer = get()
	}
	return reflect.ValueOf(pointer).Elem()
}

// refuse returns an error if values of a variable's type can never be kept.
func (v Vars) refuse() (err error) {
	for _, name := range v.names() {
		switch t := v.value(name).Type(); t.Kind() {
		case reflect.Func, reflect.Chan, reflect.UnsafePointer:
			err = errors.Join(err, fmt.Errorf("%%keep %s%s: %w", name, line(v[name]), inProcess(&path{step: name}, t.Kind())))
		}
	}
	return err
}
