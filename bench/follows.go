package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// A followed job prints the time, followedLines times, with a pause that is no multiple of
// anybody's polling interval. The first lines don't count: the followers may not have started.
const (
	followedLines = 28
	unheeded      = 8
	followedPause = 310 * time.Millisecond
)

// measureFollowing measures how long a job's line takes until it is shown.
func (s *submission) measureFollowing(ctx context.Context, _ int) error {
	run := s.ours("followed", "--platform=cpu", "--json", s.file("small.ipynb"), "--", "-lines", strconv.Itoa(followedLines), "-pause", followedPause.String())
	cmd := exec.CommandContext(ctx, run[0], run[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), s.environ()...), os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	var started struct{ Job, Directory string }
	if err := json.Unmarshal(text, &started); err != nil {
		return err
	}
	log := rundir.At(started.Directory).RankLog(0)
	if err := awaitFile(ctx, log); err != nil {
		return err
	}
	lines, pause := strconv.Itoa(followedLines), strconv.FormatFloat(followedPause.Seconds(), 'f', -1, 64)
	const best = "0.01"
	followers := []entry{
		{command: always(s.ours("followed", "logs", "-f", started.Job))},
		{name: "`tail -F`", command: always([]string{"tail", "-n", "+1", "-F", log})},
		{name: "`tail -F` as on NFS, without inotify", command: always([]string{"tail", "---disable-inotify", "-n", "+1", "-F", log})},
		{name: "submitit `stdout()` every 10 ms", command: always(s.submitit("follow", "submitit", lines, pause, best))},
		{name: "submitit `stdout()` every second", command: always(s.submitit("follow", "submitit-1s", lines, pause, "1"))},
	}
	all := make([][]float64, len(followers))
	failures := make([]error, len(followers))
	ended := make(chan int)
	for i, f := range followers {
		go func() {
			all[i], failures[i] = s.latencies(ctx, f.command(0))
			ended <- i
		}()
	}
	for range followers {
		if i := <-ended; failures[i] != nil && err == nil {
			err = fmt.Errorf("%s: %w", strings.Join(followers[i].command(0), " "), failures[i])
		}
	}
	if err != nil {
		return err
	}
	s.add(submitRow{Name: "a job's line until it is shown"}, followers, all)
	return nil
}

// awaitFile waits until a file exists: tail uses inotify only for files that it finds.
func awaitFile(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", path, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// latencies runs a command that shows times, and returns how old each was. It ends the command
// after the last one.
func (s *submission) latencies(ctx context.Context, words []string) (ages []float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), s.environ()...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer cmd.Wait() //nolint:errcheck // It was killed.
	defer cancel()
	seen := 0
	for shown := bufio.NewScanner(pipe); seen < followedLines && shown.Scan(); {
		stamp, err := strconv.ParseInt(shown.Text(), 10, 64)
		if err != nil {
			continue
		}
		if seen++; seen > unheeded {
			ages = append(ages, time.Since(time.Unix(0, stamp)).Seconds())
		}
	}
	if seen < followedLines {
		return nil, fmt.Errorf("showed %d of %d lines", seen, followedLines)
	}
	return ages, nil
}
