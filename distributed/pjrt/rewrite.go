package pjrt

// #include <stddef.h>
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"

	"gonbatch/distributed/stablehlo"
)

// rewrite replaces the bodies of the placeholders in a program by collectives over the given number
// of ranks. It returns how many it replaced. A placeholder is a function of x and after, whose body
// computes a value of the right shape. A remaining one is an error, because it would do nothing and
// each rank would train alone.
func rewrite(m *stablehlo.Module, l lowering, ranks int) (int, error) {
	replaced := map[string]bool{}
	for _, f := range m.Functions {
		p, ok := placeholderOf(f.Name)
		switch {
		case !ok || len(f.Parameters) != 2:
			continue
		case p.ranks != ranks:
			return 0, fmt.Errorf("the %s %s was built for another number of ranks than this job's %d", p.op, f.Name, ranks)
		}
		if _, _, isTensor := stablehlo.Tensor(f.Parameters[0].Type); !isTensor {
			continue
		}
		q := parameters{placeholder: p, x: f.Parameters[0], after: f.Parameters[1], first: strings.HasSuffix(f.Name, "_0")}
		for _, r := range f.Results {
			q.results = append(q.results, r.Type)
		}
		f.Ops = l.body(q)
		replaced[f.Name] = true
	}
	return len(replaced), checkReplaced(m, replaced)
}

// checkReplaced compares the placeholders that a program has or calls with those that were
// replaced.
func checkReplaced(m *stablehlo.Module, replaced map[string]bool) error {
	mentioned := map[string]bool{}
	for _, f := range m.Functions {
		mentioned[f.Name] = true
	}
	for _, b := range m.Blocks() {
		for _, o := range b.Ops {
			mentioned[o.Callee()] = true
		}
	}
	n := 0
	for name := range mentioned {
		if strings.HasPrefix(name, namePrefix) {
			n++
		}
	}
	if n != len(replaced) {
		return errUnreplaced(n, len(replaced))
	}
	return nil
}

func errUnreplaced(n, replaced int) error {
	return fmt.Errorf("the program has %d collectives, but %d would reach XLA, so each rank would train alone: %s", n, replaced, unknownForm())
}

// unknownForm explains why a placeholder can't be found.
func unknownForm() string {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/gomlx/go-xla" {
				version = " " + m.Version
			}
		}
	}
	return fmt.Sprintf("go-xla%s writes programs in a form that gonbatch does not know: use the version in gonbatch's go.mod", version)
}

// replaced counts the placeholders that were replaced in all programs of this process.
var replaced atomic.Int64

// errUnchanged means that a program is compiled as it is.
var errUnchanged = errors.New("unchanged")

// parse reads programs. Tests replace it.
var parse = stablehlo.Parse

// placeholdersIn counts the placeholders that a program mentions, whatever its form is.
func placeholdersIn(program string) (n int) {
	placeholders.Range(func(name, _ any) bool {
		if strings.Contains(program, name.(string)) {
			n++
		}
		return true
	})
	return n
}

// rewritten returns the program that is compiled instead of another one.
func rewritten(program string) (string, error) {
	m, err := parse(program)
	if err != nil { // Such as one in binary form.
		if n := placeholdersIn(program); n > 0 {
			return "", fmt.Errorf("%w (%w)", errUnreplaced(n, 0), err)
		}
		return "", errUnchanged
	}
	l, ranks := world()
	count, err := rewrite(m, l, ranks)
	if err != nil {
		return "", err
	}
	changed := count + share(m) + useKernels(m) + useGenerator(m)
	if forGPUs() {
		changed += halfProducts(m)
	}
	if changed == 0 {
		return "", errUnchanged
	}
	replaced.Add(int64(count))
	return m.String(), nil
}

// gonbatchRewrite is called by plugin.c before a program is compiled. It returns the new program in
// memory from C's malloc, or nil if there is nothing to rewrite. If the program must not be
// compiled, failure is the reason, in memory from C's malloc.
//
//export gonbatchRewrite
func gonbatchRewrite(code *C.char, size C.size_t, rewrittenSize *C.size_t, failure **C.char) *C.char {
	out, err := rewritten(string(unsafe.Slice((*byte)(unsafe.Pointer(code)), int(size))))
	switch {
	case errors.Is(err, errUnchanged):
		return nil
	case err != nil:
		*failure = C.CString("gonbatch: " + err.Error())
		return nil
	}
	*rewrittenSize = C.size_t(len(out))
	return C.CString(out)
}
