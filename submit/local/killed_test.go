package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/proc"
)

// The variables of a process that TestKilledSubmit kills.
const (
	killedTasks   = "TEST_KILLED_TASKS"
	killedProgram = "TEST_KILLED_PROGRAM"
	killedFile    = "TEST_KILLED_FILE" // To which the program writes the number of its process group.
)

// TestKilledSubmit: when submit has been killed, the program ends too, and so do its children, even
// if they ignore SIGTERM. One rank ends as several do.
func TestKilledSubmit(t *testing.T) {
	if program := os.Getenv(killedProgram); program != "" {
		runToBeKilled(t, program)
		return
	}
	for name, tc := range map[string]struct {
		tasks   int
		program string
		says    bool
	}{
		"one rank":                               {1, "exec sleep 97", false},
		"one rank that ignores SIGTERM":          {1, "trap '' TERM; sleep 97 & while :; do sleep 97; done", true},
		"a child that ignores SIGTERM":           {1, "(trap '' TERM; sleep 97) & exec sleep 97", false},
		"two ranks, the last of which ignore it": {2, "trap '' TERM; sleep 97 & while :; do sleep 97; done", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "group")
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSubmit$")
			cmd.Env = append(os.Environ(), killedTasks+"="+strconv.Itoa(tc.tasks), killedFile+"="+file, "TMPDIR="+dir,
				killedProgram+`=echo $(ps -o pgid= $$) >> "$`+killedFile+`"; `+tc.program)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			groups := writtenGroups(t, file, tc.tasks)
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // It was killed.
			for _, group := range groups {
				groupEnds(t, group)
			}
			if tc.tasks == 1 {
				checkSaid(t, dir, tc.says)
			}
		})
	}
}

// runToBeKilled runs a program as submit does.
func runToBeKilled(t *testing.T, program string) {
	t.Helper()
	tasks, err := strconv.Atoi(os.Getenv(killedTasks))
	if err != nil {
		t.Fatal(err)
	}
	spec := newSpec(t, tasks, [2]string{"one", program})
	t.Error(Runner{Out: t.Output(), Err: t.Output(), LookPath: lookOnly(noMPI)}.Run(t.Context(), staged(t, spec)))
}

// writtenGroups waits until all ranks have written their process groups.
func writtenGroups(t *testing.T, file string, n int) (groups []int) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(file) // It isn't there at first.
		if strings.Count(string(text), "\n") < n {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			group, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			groups = append(groups, group)
		}
		time.Sleep(200 * time.Millisecond) // Until the program has set its traps.
		return groups
	}
	t.Fatalf("%d programs have not started", n)
	return nil
}

func groupEnds(t *testing.T, group int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); len(proc.Group(group)) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("processes %v of group %d outlived submit", proc.Group(group), group)
		}
	}
}

// checkSaid looks for the rank's line in the log of rank 0.
func checkSaid(t *testing.T, dir string, want bool) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*", "logs", "rank-0.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs: %v, %v", logs, err)
	}
	if log := read(t, logs[0]); strings.Contains(log, "has not stopped within 1 s of SIGTERM: it is killed") != want {
		t.Errorf("the log: %q, says that it was killed %v", log, want)
	}
}
