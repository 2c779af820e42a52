package pjrt

// #include <stddef.h>
import "C"

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"
)

// targetName is the prefix of the names of the custom call in compiled programs, and of the
// functions in a graph that it replaces.
const targetName = "gonbatch_all_reduce_sum"

// target returns the name of the custom call that sums over a number of ranks. The number is part
// of the name, so that XLA refuses a program for another number.
func target(ranks int) string { return fmt.Sprintf("%s_over_%d", targetName, ranks) }

// placeholder matches a function `@gonbatch_all_reduce_sum_over_<ranks>_<n>(x, after) -> x` with
// its body, which returns x unchanged.
//
//	func.func private @gonbatch_all_reduce_sum_over_2_0(%x: tensor<8xf32>, %after: tensor<f32>) -> tensor<8xf32> {
//	  ...
//	}
var placeholder = regexp.MustCompile(`(?s)(func\.func [^@\n]*@(` + targetName + `\w*)\((%[\w.]+): (tensor<[^>]+>)[^,)]*, (%[\w.]+): (tensor<[^>]+>)[^,)]*\)[^{\n]*\{).*?\n *\}`)

// mention matches the name of a placeholder anywhere in a program.
var mention = regexp.MustCompile(targetName + `\w*`)

// rewrite replaces the bodies of the placeholders in a StableHLO module (text form) by collectives
// over the given number of ranks. It returns how many it replaced. A remaining placeholder is an
// error, because it would do nothing and each rank would train alone.
func rewrite(module string, l lowering, ranks int) (string, int, error) {
	if !strings.Contains(module, targetName) {
		return module, 0, nil
	}
	replaced := map[string]bool{}
	out := placeholder.ReplaceAllStringFunc(module, func(function string) string {
		m := placeholder.FindStringSubmatch(function)
		head, p := m[1], parameters{ranks, m[2], m[3], m[4], m[5], m[6]}
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
		if !strings.HasPrefix(name, target(ranks)+"_") {
			return fmt.Errorf("the all-reduce %s was built for another number of ranks than this job's %d", name, ranks)
		}
	}
	if len(replaced) != len(mentioned) {
		return fmt.Errorf("the program has %d all-reduces, but %d would reach XLA, so each rank would train alone: %s", len(mentioned), len(replaced), unknownForm())
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
	if count+shared+kernels+random == 0 {
		return nil
	}
	replaced.Add(int64(count))
	*rewrittenSize = C.size_t(len(out))
	return C.CString(out)
}
