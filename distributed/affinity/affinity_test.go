package affinity_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/affinity"
)

func TestDivide(t *testing.T) {
	tests := []struct {
		name    string
		allowed []int
		n       int
		want    []string
	}{
		{"even", []int{0, 1, 2, 3}, 2, []string{"0-1", "2-3"}},
		{"uneven", []int{0, 1, 2, 3, 4}, 2, []string{"0-1", "2-4"}},
		{"holes", []int{1, 3, 8}, 3, []string{"1", "3", "8"}},
		{"more ranks than CPUs", []int{4, 5}, 5, []string{"4", "5", "4", "5", "4"}},
		{"alone", []int{0, 1}, 1, []string{"0-1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i, want := range test.want {
				if got := affinity.Format(affinity.Divide(test.allowed, i, test.n)); got != want {
					t.Errorf("share %d of %d: got %s, want %s", i, test.n, got, want)
				}
			}
		})
	}
}

func TestFormat(t *testing.T) {
	if got := affinity.Format([]int{8, 1, 0, 2, 10, 11}); got != "0-2,8,10-11" {
		t.Errorf("got %s", got)
	}
}

// TestPin pins a separate process: the test binary, started again.
func TestPin(t *testing.T) {
	if os.Getenv("PIN_CHILD") != "" {
		allowed, err := affinity.Allowed()
		if err != nil {
			t.Fatal(err)
		}
		last := allowed[len(allowed)-1:]
		const threads = 20
		started, pinned, done := make(chan bool), make(chan bool), make(chan []int)
		for range threads {
			go func() {
				runtime.LockOSThread()
				started <- true
				<-pinned
				now, _ := affinity.Allowed()
				done <- now
			}()
		}
		for range threads {
			<-started
		}
		if err := affinity.Pin(last); err != nil {
			t.Fatal(err)
		}
		close(pinned)
		for range threads {
			if now := <-done; !slices.Equal(now, last) {
				t.Errorf("after Pin(%v), %v is allowed", last, now)
			}
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPin$", "-test.v")
	child.Env = append(os.Environ(), "PIN_CHILD=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestPin") {
		t.Fatalf("%v\n%s", err, out)
	}
}
