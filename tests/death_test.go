package tests

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// mortal is a training run whose last rank kills itself at the updates in -die, one for each start:
// "25,25" kills it after update 25 in the first two starts.
func mortal(t *testing.T) training {
	t.Helper()
	m := withTrainer
	m.cells = append([]string(nil), withTrainer.cells...)
	m.cells[2] = strings.Replace(m.cells[2], "trainer.WithCallbacks(holder())", "trainer.WithCallbacks(killer(world))", 1)
	m.cells[1] += `

var die = flag.String("die", "", "updates at which starts die")

func killer(world *distributed.World) trainer.Callback {
	restart, err := strconv.Atoi(os.Getenv("GONBATCH_RESTARTS"))
	check(err)
	all := strings.Split(*die, ",")
	return trainer.Callback{Name: "killer", BatchEnd: func(e *trainer.Event) error {
		if world.Rank() == world.Size()-1 && restart < len(all) && fmt.Sprint(e.Step) == all[restart] {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}}
}`
	return m
}

// twice is what the script prints after two deaths at update 33. Rank 0 may have reported one
// update fewer.
var twice = regexp.MustCompile(`died after update 3[23] in two starts in a row: that is a bug, not bad luck, so it is not started again`)

// TestDeaths checks that a training run whose rank is killed starts again by itself and ends with
// the result of an undisturbed one, on a cluster and on this machine. A training run that dies
// twice at the same update is not started again.
func TestDeaths(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	training := mortal(t)
	where := map[string][]string{
		"two nodes":               {"--nodes", "2", "--mpi", "pmix", "--cpus-per-task", "1", "--follow"},
		"two ranks, this machine": {"--local", "--tasks", "2"},
		"one rank, this machine":  {"--local", "--devices", "1"},
	}
	for name, options := range where {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			train := func(die string) (user, string, error) {
				u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
				notebook := u.write(t, "mortal.ipynb", training.cells...)
				out, err := u.submit(t, append(append([]string{}, options...), notebook, "--", "-hold=false", "-die", die)...)
				return u, out, err
			}
			u, out, err := train("")
			if err != nil {
				t.Fatalf("undisturbed: %v\n%s", err, out)
			}
			want := training.final(t, u.run(t))
			// There is no checkpoint between the second and the third death.
			u, out, err = train("25,33,37")
			if err != nil || training.final(t, u.run(t)) != want {
				t.Errorf("three deaths: %v, or the result differs from that of an undisturbed training\n%s\n%s", err, out, logs(t, u.run(t)))
			}
			if n, err := rundir.CountStarts(u.run(t)); n != 4 || err != nil {
				t.Errorf("%d starts, %v; want 4", n, err)
			}
			u, out, err = train("25,33,33,40")
			if err == nil {
				t.Error("a training run that died twice at update 33 succeeded")
			}
			if !twice.MatchString(out) {
				t.Errorf("%v is not in:\n%s", twice, out)
			}
			if n, err := rundir.CountStarts(u.run(t)); n != 3 || err != nil {
				t.Errorf("%d starts, %v; want 3\n%s\n%s", n, err, out, logs(t, u.run(t)))
			}
		})
	}
}

// logs returns all logs of a run.
func logs(t *testing.T, run rundir.Dir) (all string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(run.Logs(), "*"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range files {
		all += file + ":\n" + read(t, file)
	}
	return all
}
