package pjrt

// #include <stddef.h>
import "C"

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// placeholder matches a function `@gonbatch_all_reduce_sum_over_<ranks>_<n>(x, after)`, or that of
// another collective, with its body, which computes a value of the right shape. The body is
// indented more than the function.
//
//	func.func private @gonbatch_all_reduce_sum_over_2_0(%x: tensor<8xf32>, %after: tensor<f32>) -> tensor<8xf32> {
//	  ...
//	}
var placeholder = regexp.MustCompile(`(?s)(func\.func [^@\n]*@(` + targetPrefix + `\w*)\((%[\w.]+): (tensor<[^>]+>)[^,)]*, (%[\w.]+): (tensor<[^>]+>)[^,)]*\) -> (tensor<[^>]+>|\(tensor<[^>]+>, tensor<[^>]+>\))[^{\n]*\{).*?\n {0,2}\}`)

// mention matches the name of a placeholder anywhere in a program.
var mention = regexp.MustCompile(targetPrefix + `\w*`)

// rewrite replaces the bodies of the placeholders in a StableHLO module (text form) by collectives
// over the given number of ranks. It returns how many it replaced. A remaining placeholder is an
// error, because it would do nothing and each rank would train alone.
func rewrite(module string, l lowering, ranks int) (string, int, error) {
	if !mention.MatchString(module) {
		return module, 0, nil
	}
	replaced := map[string]bool{}
	out := placeholder.ReplaceAllStringFunc(module, func(function string) string {
		m := placeholder.FindStringSubmatch(function)
		d, _, ok := parse(m[2])
		if !ok {
			return function
		}
		head, p := m[1], parameters{does: d, ranks: ranks, name: m[2], x: m[3], xType: m[4], after: m[5], afterType: m[6], resultType: m[7]}
		replaced[p.name] = true
		return head + l.body(p)
	})
	return out, len(replaced), checkReplaced(module, replaced, ranks)
}

// checkReplaced compares the placeholders that a program mentions with those that were replaced,
// and with the number of ranks.
func checkReplaced(module string, replaced map[string]bool, ranks int) error {
	mentioned := map[string]bool{}
	for _, name := range mention.FindAllString(module, -1) {
		mentioned[name] = true
		if d, built, ok := parse(name); ok && built != ranks {
			return fmt.Errorf("the %s %s was built for another number of ranks than this job's %d", d.op, name, ranks)
		}
	}
	if len(replaced) != len(mentioned) {
		return fmt.Errorf("the program has %d collectives, but %d would reach XLA, so each rank would train alone: %s", len(mentioned), len(replaced), unknownForm())
	}
	return nil
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

// gonbatchRewrite is called by plugin.c before a program is compiled. It returns the new program in
// memory from C's malloc, or nil if there is nothing to rewrite. If the program must not be
// compiled, failure is the reason, in memory from C's malloc.
//
//export gonbatchRewrite
func gonbatchRewrite(code *C.char, size C.size_t, rewrittenSize *C.size_t, failure **C.char) *C.char {
	module := string(unsafe.Slice((*byte)(unsafe.Pointer(code)), int(size)))
	l, ranks := world()
	out, count, err := rewrite(module, l, ranks)
	if err != nil {
		*failure = C.CString("gonbatch: " + err.Error())
		return nil
	}
	out, shared := share(out)
	out, kernels := useKernels(out)
	out, random := useGenerator(out)
	halves := 0
	if forGPUs() {
		out, halves = halfProducts(out)
	}
	if count+shared+kernels+random+halves == 0 {
		return nil
	}
	replaced.Add(int64(count))
	*rewrittenSize = C.size_t(len(out))
	return C.CString(out)
}
