package hugepages

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// TestAdvise: the mapping that has the middle of large memory is marked for huge pages ("hg" in
// smaps' VmFlags), and small or no memory does no harm.
func TestAdvise(t *testing.T) {
	for _, size := range []int{0, 1, 4096, 8*os.Getpagesize() + 1} {
		Advise(make([]byte, size))
	}
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Log("the kernel has no huge pages:", err)
		return
	}
	memory := make([]byte, 64<<20)
	Advise(memory[1:])
	if flags := flagsOf(t, uintptr(unsafe.Pointer(&memory[len(memory)/2]))); !strings.Contains(flags, " hg") {
		t.Errorf("the flags of the mapping are %s", flags)
	}
}

// TestMappings: advice for many slices doesn't split the process's memory into many mappings.
func TestMappings(t *testing.T) {
	before := mappings(t)
	var all [][]byte
	for i := range 3000 {
		all = append(all, make([]byte, 40_000+i))
		if i%30 == 0 {
			all = append(all, make([]byte, least+40_000+i))
		}
	}
	for _, memory := range all {
		Advise(memory)
	}
	if now := mappings(t); now > before+100 {
		t.Errorf("%d mappings, before %d", now, before)
	}
	runtime.KeepAlive(all)
}

// mappings returns the number of the process's mappings.
func mappings(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// flagsOf returns the flags of the mapping with an address.
func flagsOf(t *testing.T, address uintptr) string {
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(mappings)) {
		if from, to, ok := bounds(line); ok {
			inside = from <= address && address < to
		}
		if inside && strings.HasPrefix(line, "VmFlags:") {
			return line
		}
	}
	t.Fatalf("no mapping has %x", address)
	return ""
}

// bounds returns the addresses in a mapping's first line, such as "c000000000-c004000000 rw-p".
func bounds(line string) (from, to uintptr, ok bool) {
	n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to)
	return from, to, n == 2
}
