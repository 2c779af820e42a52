package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// printed is a contender that prints a line.
func printed(name, line string) contender {
	return contender{name: name, start: func(ctx context.Context, _ []int, args []string) ([]*exec.Cmd, error) {
		return []*exec.Cmd{exec.CommandContext(ctx, "echo", line)}, nil
	}}
}

func TestAllReduceTable(t *testing.T) {
	w := allReduceWorld{Ranks: 3}
	all := []contender{
		printed(inProgram, `{"micros":[3,110,2000,40000,160000],"raw_micros":[1,100,2000,50000,160000]}`), printed(rawMPI, `{"version":"Open MPI v4","micros":[1,100,2000,50000,200000]}`),
		printed(rawHuge, `{"version":"Open MPI v4","micros":[1,100,1000,40000,100000]}`), printed(overTCP, `{"micros":[50,100,1000,9000,70000]}`),
		printed(overGloo, `{"version":"2.15","micros":[100,200,2000,9000,35000]}`),
	}
	if err := w.measure(t.Context(), all, fewTurns, []int{0, 1, 2}, 3, io.Discard); err != nil {
		t.Fatal(err)
	}
	got := allReduceReport{CPU: "A CPU", Load: "0.02", Rounds: 3, Worlds: []allReduceWorld{w}}.markdown()
	want := `A CPU, load average before: 0.02.

## 3 ranks

| size | in a program, Open MPI | MPI_Allreduce in turn | ratio | MPI_Allreduce in C, Open MPI v4 | huge pages | in a program, our TCP | gloo, PyTorch 2.15 | ratio |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|
| 4 B | 3 | 1 | 3.00 | 1 | 1 | 50 | 100 | 0.50 |
| 64 KB | 110 | 100 | 1.10 | 100 | 100 | 100 | 200 | 0.50 |
| 1 MB | 2000 | 2000 | 1.00 | 2000 | 1000 | 1000 | 2000 | 0.50 |
| 16 MB | 40000 | 50000 | 0.80 | 50000 | 40000 | 9000 | 9000 | 1.00 |
| 64 MB | 160000 | 160000 | 1.00 | 200000 | 100000 | 70000 | 35000 | 2.00 |
`
	if !strings.HasSuffix(got, want) {
		t.Errorf("table:\n%s\nwant at its end:\n%s", got, want)
	}
}

func TestReduceRefuses(t *testing.T) {
	for _, line := range []string{"no JSON", `{"micros":[1]}`, `{"micros":[1,2],"raw_micros":[1]}`} {
		if _, err := reduce(t.Context(), printed("X", line), []int{0}, []allReduceTurn{{4, 1, 1}, {8, 1, 1}}); err == nil || !strings.Contains(err.Error(), "X: its last line must have the times of 2 sizes") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestOSU: a program with osu_allreduce's options and its table gets a column of its own.
func TestOSU(t *testing.T) {
	path := filepath.Join(t.TempDir(), "osu_allreduce")
	script := func(table, floats string) {
		text := "#!/bin/sh\n[ \"$9 ${10}\" = '" + floats + "' ] || exit 3\n[ \"$1 $3 $5 $7\" = '-m -M -x -i' ] && [ $4 -ge $((4 * ${2%:*})) ] || exit 7\ncat <<END\n" + table + "\nEND\n"
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	const title = "\n# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_FLOAT.\n# Size       Avg Latency(us)\n"
	script("", "")
	found, err := options{osu: path}.osuContender()
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	ours := printed(inProgram, `{"micros":[3,110],"raw_micros":[1,100]}`)
	all := []contender{ours, printed(rawMPI, `{"micros":[1,100]}`), printed(rawHuge, `{"micros":[1,100]}`), printed(overTCP, `{"micros":[50,100]}`), printed(overGloo, `{"micros":[100,200]}`), found[0]}
	const table = "${2%:*}                     $((${2%:*} / 4)).50"
	for _, floats := range []string{"-T mpi_float", " "} { // Old versions refuse the option.
		script(title+table, floats)
		w := allReduceWorld{Ranks: 2}
		if err := w.measure(t.Context(), all, []allReduceTurn{{4, 200, 20}, {256 << 20, 1, 4}}, []int{0}, 1, io.Discard); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		w.write(&b)
		for _, want := range []string{"| ratio | osu_allreduce v7.4 |\n", "|--:|--:|\n| 4 B |", "| 0.50 | 1.5 |\n", "| 67108864 |\n"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	}
	for _, test := range []struct{ name, table, err string }{
		{"no size", title, "osu_allreduce -m 4:4 -M 536870912 -x 1 -i 2: no line begins with 4"},
		{"no time", title + "4 -", `4 bytes take "-" us`},
		{"another size", title + "40 1.0", "no line begins with 4"},
	} {
		script(test.table, "-T mpi_float")
		if _, err := reduce(t.Context(), found[0], []int{0}, []allReduceTurn{{4, 1, 2}}); err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", test.name, err, test.err)
		}
	}
	for _, missing := range []string{filepath.Dir(path), path + "2"} {
		if _, err := (options{osu: missing}).osuContender(); err == nil || !strings.Contains(err.Error(), "-osu "+missing+": want osu_allreduce") {
			t.Errorf("%s: %v", missing, err)
		}
	}
}
