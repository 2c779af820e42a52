// Command control is a rank that only meets the others and watches them: package tcp's rendezvous
// and ring, and package watch, without XLA. The benchmark starts a thousand of them.
//
// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which rank it is. It prints lines: "began",
// "joined" when it is in the ring, "watched" when the watch runs, "failed" when it writes the
// report of a failure, and "ended", each with its rank. Rank 0 also prints, every second, how many
// messages its hub has received, its processor time in microseconds and its memory in KiB: "stats
// 20460 310000 64000".
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/distributed/tcp"
	"gonbatch/distributed/watch"
)

func main() {
	log.Fatal(run(context.Background())) // It returns only if it fails.
}

func run(ctx context.Context) error {
	rank, err := strconv.Atoi(os.Getenv("RANK"))
	if err != nil {
		return fmt.Errorf("RANK: %w", err)
	}
	size, err := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err != nil {
		return fmt.Errorf("WORLD_SIZE: %w", err)
	}
	say := func(what string) { fmt.Printf("%s %d\n", what, rank) }
	say("began")
	comm, err := tcp.Init(ctx, tcp.Config{Rank: rank, Size: size, Master: os.Getenv("MASTER_ADDR") + ":" + os.Getenv("MASTER_PORT"), Local: true})
	if err != nil {
		return err
	}
	say("joined")
	w, err := watch.Start(ctx, watch.Config{Rank: rank, Size: size, Host: "here", Exchange: comm, Log: reports{say}, Exit: func(code int) {
		say("ended")
		os.Exit(code)
	}})
	if err != nil {
		return err
	}
	w.Progress(1) // From now on, its end is a failure.
	say("watched")
	if rank == 0 {
		return stats(w)
	}
	select {} // Until the watch ends it.
}

// reports is the log of the watch.
type reports struct{ say func(string) }

func (r reports) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("failed")) {
		r.say("failed")
	} else if !bytes.Contains(text, []byte(" ends because of ")) {
		fmt.Fprintf(os.Stderr, "%s", text)
	}
	return len(text), nil
}

// stats prints what the watch takes on this rank, until the watch ends it.
func stats(w *watch.Watch) error {
	for {
		time.Sleep(time.Second)
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		fmt.Printf("stats %d %d %d\n", w.Heard(), cpu.Microseconds(), usage.Maxrss)
	}
}
