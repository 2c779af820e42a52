package compilecache_test

import (
	"strings"
	"testing"

	"gonbatch/internal/compilecache"
)

const x86 = `processor	: 0
vendor_id	: AuthenticAMD
model name	: AMD EPYC
cpu MHz		: 2400.000
flags		: fpu sse avx2 avx512f

processor	: 1
vendor_id	: AuthenticAMD
model name	: AMD EPYC
cpu MHz		: 3100.000
flags		: fpu sse avx2 avx512f
`

// TestMachine: machines are of one kind if the same code runs on both.
func TestMachine(t *testing.T) {
	const arm = "processor : 0\nFeatures : fp asimd sve\nCPU part : 0xd40\n"
	tests := []struct {
		name, a, b string
		same       bool
	}{
		{"another frequency", x86, strings.ReplaceAll(x86, "3100", "1500"), true},
		{"more cores", x86, x86 + "\n" + x86, true},
		{"a feature less", x86, strings.ReplaceAll(x86, " avx512f", ""), false},
		{"another model", x86, strings.ReplaceAll(x86, "EPYC", "Ryzen"), false},
		{"another instruction set", x86, arm, false},
		{"a core of another kind", arm, arm + "\nprocessor : 1\nFeatures : fp asimd\nCPU part : 0xd05\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, errA := compilecache.MachineOf(test.a)
			b, errB := compilecache.MachineOf(test.b)
			if errA != nil || errB != nil || (a == b) != test.same {
				t.Errorf("%v, %v:\n%s\n--\n%s", errA, errB, a, b)
			}
		})
	}
	if got, err := compilecache.MachineOf("processor : 0\nBogoMIPS : 50\n"); err == nil {
		t.Errorf("a CPU that is not named is %q", got)
	}
	if got, err := compilecache.Machine(); err != nil || got == "" {
		t.Errorf("this machine: %q, %v", got, err)
	}
}

// TestKey: parts can't be mistaken for one another.
func TestKey(t *testing.T) {
	add := func(parts ...string) compilecache.Key {
		h := compilecache.NewHash()
		for i := 0; i < len(parts); i += 2 {
			h.Add(parts[i], []byte(parts[i+1]))
		}
		return h.Key()
	}
	seen := map[compilecache.Key]int{}
	for i, parts := range [][]string{{}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab", ""}, {"a", "bc", "d", "e"}, {"a", "b", "cd", "e"}, {"d", "e", "a", "bc"}} {
		key := add(parts...)
		if j, ok := seen[key]; ok {
			t.Errorf("parts %d and %d have the same key", i, j)
		}
		seen[key] = i
	}
	if key := add("a", "b"); seen[key] != 3 {
		t.Errorf("the same parts have different keys: %s", key)
	}
}
