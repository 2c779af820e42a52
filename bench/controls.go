package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	connections "gonbatch/distributed/network"
	"gonbatch/internal/plural"
)

// controlReport is the result of measureControl.
type controlReport struct {
	CPU    string       `json:"cpu"`
	Cores  int          `json:"cores"`
	Load   string       `json:"load_average_before"`
	Rounds int          `json:"rounds"`
	Rows   []controlRow `json:"rows"`
}

// controlRow is a number of ranks: medians, and each round.
type controlRow struct {
	Ranks  int       `json:"ranks"`
	Median control   `json:"median"`
	Rounds []control `json:"rounds"`
}

// control is one start of all ranks, with times in seconds since the first process was started.
type control struct {
	Began   float64 `json:"began"`   // All processes run.
	Joined  float64 `json:"joined"`  // All are in the ring.
	Watched float64 `json:"watched"` // All are watched.
	// The values of rank 0: its processor time until all were watched, and afterwards in percent of
	// one core; the messages that it receives each second; the most memory that it used.
	StartCPU float64 `json:"start_cpu_seconds"`
	CPU      float64 `json:"cpu_percent"`
	Messages float64 `json:"messages_per_second"`
	MB       float64 `json:"peak_mb"`
	// After one rank was killed: when rank 0 reported it, and when all ranks had ended.
	Reported float64 `json:"reported_seconds"`
	Ended    float64 `json:"ended_seconds"`
}

// controlWorlds are the numbers of ranks. mostControlRounds keeps the measurement under three
// minutes.
var controlWorlds = []int{64, 256, 1024}

const mostControlRounds = 3

// measureControl starts many ranks on this machine, without pinning them.
func measureControl(ctx context.Context, opts options, out io.Writer) (controlReport, error) {
	report := controlReport{CPU: cpuModel(), Load: loadAverage(), Rounds: min(opts.rounds, mostControlRounds)}
	available, err := cores()
	if err != nil {
		return report, err
	}
	report.Cores = len(available)
	program, err := build(ctx, "./bench/control", "bench-control")
	if err != nil {
		return report, err
	}
	for _, ranks := range controlWorlds {
		row := controlRow{Ranks: ranks}
		for round := range report.Rounds {
			c, err := startMany(ctx, program, ranks)
			if err != nil {
				return report, fmt.Errorf("%d ranks: %w", ranks, err)
			}
			fmt.Fprintf(out, "%d ranks, round %d: %+v\n", ranks, round+1, c)
			row.Rounds = append(row.Rounds, c)
		}
		row.fill()
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}

// fill sets the medians.
func (r *controlRow) fill() {
	for _, field := range []func(*control) *float64{
		func(c *control) *float64 { return &c.Began }, func(c *control) *float64 { return &c.Joined }, func(c *control) *float64 { return &c.Watched },
		func(c *control) *float64 { return &c.StartCPU }, func(c *control) *float64 { return &c.CPU }, func(c *control) *float64 { return &c.Messages },
		func(c *control) *float64 { return &c.MB }, func(c *control) *float64 { return &c.Reported }, func(c *control) *float64 { return &c.Ended },
	} {
		*field(&r.Median) = median(r.Rounds, func(c control) float64 { return *field(&c) })
	}
}

// crowd is a number of running ranks. All print to the same pipe.
type crowd struct {
	cmds    []*exec.Cmd
	running sync.WaitGroup
	lines   chan string
	started time.Time
	counts  map[string]int       // How many lines of each kind there were,
	last    map[string]time.Time // and when the last one came.
	stat    stat                 // Rank 0's last one.
}

// stat is what rank 0 says of itself: the messages so far, its processor time and its memory.
type stat struct {
	at    time.Time
	heard int64
	cpu   time.Duration
	kib   int64
}

// startMany starts the ranks, waits until they are watched, looks at rank 0 for some seconds, and
// kills one rank.
func startMany(ctx context.Context, program string, ranks int) (control, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := connections.Room(2 * ranks); err != nil { // Go keeps a file for each child.
		return control{}, err
	}
	all := &crowd{lines: make(chan string, 4*ranks), counts: map[string]int{}, last: map[string]time.Time{}}
	defer func() {
		cancel()
		all.running.Wait()
	}()
	if err := all.start(ctx, program, ranks); err != nil {
		return control{}, err
	}
	return all.observe(ctx, ranks)
}

// start starts the processes. Each has one thread for Go: a rank that mostly waits needs no more.
func (a *crowd) start(ctx context.Context, program string, ranks int) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // the processes have their own
	go a.read(in)
	environ := append(os.Environ(), "GOMAXPROCS=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+strconv.Itoa(port), "WORLD_SIZE="+strconv.Itoa(ranks))
	a.started = time.Now()
	for rank := range ranks {
		cmd := exec.CommandContext(ctx, program)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(environ[:len(environ):len(environ)], "RANK="+strconv.Itoa(rank)), out, os.Stderr
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start rank %d: %w", rank, err)
		}
		a.cmds = append(a.cmds, cmd)
		a.running.Go(func() { _ = cmd.Wait() }) // A watch ends its process with an error.
	}
	return nil
}

func (a *crowd) read(in io.ReadCloser) {
	defer in.Close()
	defer close(a.lines)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		a.lines <- lines.Text()
	}
}

// steadySeconds is how long rank 0 is looked at.
const steadySeconds = 3

// observe reads what the ranks print.
func (a *crowd) observe(ctx context.Context, ranks int) (c control, err error) {
	err = errors.Join(a.await(ctx, "began", ranks, &c.Began), a.await(ctx, "joined", ranks, &c.Joined), a.await(ctx, "watched", ranks, &c.Watched))
	if err != nil {
		return c, err
	}
	before := a.counts["stats"]
	if err := a.await(ctx, "stats", before+1, new(float64)); err != nil {
		return c, err
	}
	first := a.stat
	if err := a.await(ctx, "stats", before+1+steadySeconds, new(float64)); err != nil {
		return c, err
	}
	seconds := a.stat.at.Sub(first.at).Seconds()
	c.StartCPU, c.MB = first.cpu.Seconds(), float64(a.stat.kib)/1024
	c.CPU, c.Messages = 100*(a.stat.cpu-first.cpu).Seconds()/seconds, float64(a.stat.heard-first.heard)/seconds
	return c, a.kill(ctx, 2*ranks/3, &c)
}

// kill kills a rank, and waits until the others have ended.
func (a *crowd) kill(ctx context.Context, rank int, c *control) error {
	if a.counts["failed"]+a.counts["ended"] > 0 {
		return errors.New("a rank was reported before any was killed")
	}
	a.started = time.Now()
	if err := a.cmds[rank].Process.Kill(); err != nil {
		return err
	}
	return errors.Join(a.await(ctx, "failed", 1, &c.Reported), a.await(ctx, "ended", len(a.cmds)-1, &c.Ended))
}

// await reads lines until there are so many of a kind, and sets how long that took.
func (a *crowd) await(ctx context.Context, what string, n int, seconds *float64) error {
	for a.counts[what] < n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %s say %q: %w", a.counts[what], plural.Of(n, "rank"), what, ctx.Err())
		case line, ok := <-a.lines:
			if !ok {
				return fmt.Errorf("%d of %s said %q, and all have ended", a.counts[what], plural.Of(n, "rank"), what)
			}
			if err := a.count(line); err != nil {
				return err
			}
		}
	}
	*seconds = a.last[what].Sub(a.started).Seconds()
	return nil
}

// count counts a line.
func (a *crowd) count(line string) error {
	what, rest, _ := strings.Cut(line, " ")
	a.counts[what]++
	a.last[what] = time.Now()
	if what != "stats" {
		return nil
	}
	var micros int64
	a.stat.at = a.last[what]
	if _, err := fmt.Sscan(rest, &a.stat.heard, &micros, &a.stat.kib); err != nil {
		return fmt.Errorf("line %q: %w", line, err)
	}
	a.stat.cpu = time.Duration(micros) * time.Microsecond
	return nil
}

// markdown returns the report as a table.
func (r controlReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Many ranks

Light processes that only meet and watch one another (the rendezvous and the ring of package tcp, and
package watch, without XLA), all on this machine with %s. Median of %s. The first three times are
those since the first process was started, until all processes ran, were connected, and were watched.
Rank 0's processor time is that of its start, and later that of watching. Then one rank is killed:
the last columns say how long after that rank 0 reported it, and all ranks had ended.
%s, load average before: %s.%s

| ranks | all run | connected | watched | rank 0: CPU of the start | of watching | messages/s | peak MB | killed rank reported | all ended |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
`, plural.Of(r.Cores, "core"), plural.Of(r.Rounds, "round"), r.CPU, r.Load, busy(r.Load))
	for _, row := range r.Rows {
		m := row.Median
		fmt.Fprintf(&b, "| %d | %.2f s | %.2f s | %.2f s | %.2f s | %.1f %% | %.0f | %.0f | %.2f s | %.2f s |\n", row.Ranks, m.Began, m.Joined, m.Watched,
			m.StartCPU, m.CPU, m.Messages, m.MB, m.Reported, m.Ended)
	}
	return b.String()
}
