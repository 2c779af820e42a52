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

// targetName begins the names of the custom call that XLA finds in compiled programs and of the
// functions that stand for it in a graph.
const targetName = "gonbatch_all_reduce_sum"

// target is the custom call that sums over so many ranks. The number is in the name, so XLA refuses
// a program that was made for another one.
func target(ranks int) string { return fmt.Sprintf("%s_over_%d", targetName, ranks) }

// placeholder matches a function `@gonbatch_all_reduce_sum_over_<ranks>_<n>(x, after) -> x` with
// its body, which returns x unchanged.
//
//	func.func private @gonbatch_all_reduce_sum_over_2_0(%x: tensor<8xf32>, %after: tensor<f32>) -> tensor<8xf32> {
//	  ...
//	}
var placeholder = regexp.MustCompile(`(?s)(func\.func [^@\n]*@(` + targetName + `\w*)\((%[\w.]+): (tensor<[^>]+>)[^,)]*, (%[\w.]+): (tensor<[^>]+>)[^,)]*\)[^{\n]*\{).*?\n *\}`)

// mention is the name of a placeholder, wherever it stands in a program.
var mention = regexp.MustCompile(targetName + `\w*`)

// rewrite replaces the bodies of the placeholders in a StableHLO module (text form) by collectives
// over so many ranks. It returns how many there were. A placeholder that stays would do nothing,
// and each rank would train alone: it is an error.
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
			return fmt.Errorf("the all-reduce %s was made for another number of ranks than the %d of this job", name, ranks)
		}
	}
	if len(replaced) != len(mentioned) {
		return fmt.Errorf("the program has %d all-reduces, but %d were put into what XLA would compile: the ranks would train apart; %s", len(mentioned), len(replaced), unknownForm())
	}
	return nil
}

// unknownForm says why a placeholder can't be found.
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

// gonbatchRewrite is called by plugin.c for every program before it is compiled. It returns memory
// of C's malloc, or nil if there is nothing to rewrite, or the program must not be compiled: then
// failure is why, in memory of C's malloc.
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
	if count+shared == 0 {
		return nil
	}
	replaced.Add(int64(count))
	*rewrittenSize = C.size_t(len(out))
	return C.CString(out)
}
