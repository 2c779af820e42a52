package pjrt

// #include <stddef.h>
import "C"

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"unsafe"
)

// targetName begins the names of the custom call that XLA finds in compiled programs and of the functions that stand for it in a graph.
const targetName = "gonbatch_all_reduce_sum"

// target is the custom call that sums over so many ranks. The number is in the name, so XLA refuses a program that was made for another one.
func target(ranks int) string { return fmt.Sprintf("%s_over_%d", targetName, ranks) }

// placeholder matches a function `@gonbatch_all_reduce_sum_over_<ranks>_<n>(x, after) -> x` with its body, which returns x unchanged.
//
//	func.func private @gonbatch_all_reduce_sum_over_2_0(%x: tensor<8xf32>, %after: tensor<f32>) -> tensor<8xf32> {
//	  ...
//	}
var placeholder = regexp.MustCompile(`(?s)(func\.func [^@\n]*@(` + targetName + `_over_\d+)_\d+\((%[\w.]+): (tensor<[^>]+>)[^,)]*, (%[\w.]+): (tensor<[^>]+>)[^,)]*\)[^{\n]*\{).*?\n *\}`)

// rewrite replaces the bodies of the placeholders in a StableHLO module (text form) by the custom call. It reports how many there were.
func rewrite(module string) (string, int) {
	if !strings.Contains(module, targetName) {
		return module, 0
	}
	count := 0
	out := placeholder.ReplaceAllStringFunc(module, func(function string) string {
		count++
		m := placeholder.FindStringSubmatch(function)
		head, target, x, xType, after, afterType := m[1], m[2], m[3], m[4], m[5], m[6]
		return head +
			"\n    %reduced = stablehlo.custom_call @" + target + "(" + x + ", " + after + ") {api_version = 4 : i32, has_side_effect = true, backend_config = {}, " +
			"output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}" +
			" : (" + xType + ", " + afterType + ") -> " + xType +
			"\n    return %reduced : " + xType + "\n  }"
	})
	return out, count
}

// replaced counts the placeholders that were replaced in all programs of this process.
var replaced atomic.Int64

// gonbatchRewrite is called by plugin.c for every program before it is compiled. It returns memory of C's malloc, or nil if the
// program has no collective.
//
//export gonbatchRewrite
func gonbatchRewrite(code *C.char, size C.size_t, rewrittenSize *C.size_t) *C.char {
	module := string(unsafe.Slice((*byte)(unsafe.Pointer(code)), int(size)))
	out, count := rewrite(module)
	if count == 0 {
		return nil
	}
	replaced.Add(int64(count))
	if path := os.Getenv(dumpVariable); path != "" {
		// A debugging aid, so a failure to write is not worth failing for.
		_ = os.WriteFile(path, []byte(out), 0o644)
	}
	*rewrittenSize = C.size_t(len(out))
	return C.CString(out)
}

// dumpVariable names a file to write the last program with a collective to, as StableHLO text.
const dumpVariable = "GONBATCH_DUMP_STABLEHLO"
