package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
	"gonbatch/kernel/assist"
	"gonbatch/kernel/build"
	"gonbatch/kernel/magic"
	"gonbatch/kernel/relay"
)

// parentPoll is how often the kernel checks that its client is alive.
const parentPoll = time.Second

// stopGrace is how long GoNB may take to end its cell and gopls before it is killed.
const stopGrace = 3 * time.Second

// Options configure Run.
type Options struct {
	// ConnectionFile is the file in which Jupyter tells the kernel its ports and key.
	ConnectionFile string
	// SourceDir is the root of gonbatch's source tree.
	SourceDir string
	// PluginDir is the folder of XLA's PJRT plugin. If it is empty, cells find or install the
	// plugin themselves on first use.
	PluginDir string
	// Environ is the environment of GoNB and of the cells, as in os.Environ.
	Environ []string
	// Log receives errors. It also receives the end of GoNB's log if GoNB fails, or all of it if
	// rundir.EnvVerbose is set.
	Log io.Writer
}

// Run runs one kernel session. It blocks until the client shuts the kernel down, the client's
// process is gone, this process gets SIGTERM or SIGHUP, or ctx ends; then it leaves no process and
// no file behind. It takes over the process's signals and the processes that GoNB orphans, so it
// needs its own process.
func Run(ctx context.Context, opts Options) error {
	opts, err := opts.resolve()
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	found, err := findTools(opts.Environ, opts.SourceDir)
	if err != nil {
		return fmt.Errorf("kernel: %w", &notStarted{err})
	}
	front, err := relay.ReadConnection(opts.ConnectionFile)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	s, err := start(opts, found)
	if err != nil {
		return fmt.Errorf("kernel: start a session: %w", &notStarted{err})
	}
	if err := pruneTrainings(checkpointStore(opts.Environ), time.Now()); err != nil {
		fmt.Fprintf(opts.Log, "kernel: remove old checkpoints: %v\n", err)
	}
	return errors.Join(serve(ctx, opts, found, s, front), s.close())
}

// notStarted is the reason why a session could not be started.
type notStarted struct{ error }

// refuse replaces Run for a kernel that can't start: its clients get the reason for each cell,
// until they shut the kernel down. It returns the reason.
func refuse(ctx context.Context, opts Options, reason error) error {
	front, err := relay.ReadConnection(opts.ConnectionFile)
	if err != nil {
		return errors.Join(reason, fmt.Errorf("kernel: %w", err))
	}
	ctx, cancel := watchClient(ctx, os.Getppid)
	defer cancel()
	fmt.Fprintln(opts.Log, reason)
	return errors.Join(reason, relay.Refuse(ctx, front, reason, opts.Log))
}

// start creates the session's folder.
func start(opts Options, found tools) (*session, error) {
	dir, reason, err := makeSessionDir(sessionParents(opts.Environ))
	if err != nil {
		return nil, err
	}
	if reason != nil {
		fmt.Fprintf(opts.Log, "kernel: %v\nkernel: the session is in %s\n", reason, dir)
	}
	return newSession(opts.SourceDir, found, dir)
}

// serve runs GoNB and the relay in front of it until one of them ends.
func serve(ctx context.Context, opts Options, found tools, s *session, front relay.Connection) error {
	sockets, removeSockets, err := socketDir(s)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	defer removeSockets()
	back := relay.PrivateConnection(sockets)
	// GoNB takes the kernel's id in Jupyter from the file's name.
	connectionFile := filepath.Join(s.dir, filepath.Base(opts.ConnectionFile))
	if err := back.Write(connectionFile); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	stopGuard, err := startGuard(found.self, opts.Environ, s)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	defer stopGuard()
	ctx, cancel := watchClient(ctx, os.Getppid)
	defer cancel()
	endWithin(ctx, endTime, opts.Log, os.Exit)
	gonb := exec.CommandContext(ctx, found.gonb, "--kernel", connectionFile, "--raw_error")
	gonb.Env = sessionEnvironment(opts, found, s)
	chatter := new(tailLog)
	var log io.Writer = chatter
	if environment(opts.Environ).get(rundir.EnvVerbose) != "" {
		log = opts.Log
	}
	gonb.Stdout, gonb.Stderr = log, log
	helper := assist.New(assist.Options{
		Program: found.gopls, Dir: s.moduleDir, Built: filepath.Join(s.cell(), build.BuiltFile), Environ: gonb.Env, Log: log,
	})
	defer helper.Close()
	var ready atomic.Bool
	relayed := make(chan error, 1)
	relayCtx, endRelay := context.WithCancelCause(ctx)
	history, _ := userdir.State(environment(opts.Environ).get, "history.jsonl") // The user may have no place for it.
	go func() {
		defer cancel()
		relayed <- relay.Run(relayCtx, relay.Options{
			Front: front, Back: back, StatusProgram: s.statusProgram(), StatusFile: s.statusFile(), CellDir: s.cell(), Assist: helper,
			Magics:   magic.New(magic.Options{Program: found.self, Environ: opts.Environ, Dir: s.workDir, NotebookDir: notebookDir, Module: s.moduleDir, Kept: s.keep()}),
			KeepFile: filepath.Join(s.seed(), "gonbatch__keep.go"), KeepDir: s.keep(),
			Stdin: s.stdin(), StdinPipe: s.stdinPipe(), Waiting: func() bool { return waitsForInput(s.stdinPipe()) },
			HistoryFile: history, Interrupt: interrupt, Settle: settle, Ready: func() { ready.Store(true) }, Answered: s.showMain, Log: opts.Log,
		})
	}()
	err = runTree(ctx, gonb, stopGrace)
	if err == nil && !ready.Load() && ctx.Err() == nil {
		err = errors.New("exit status 0")
	}
	if err != nil {
		chatter.showIn(opts.Log)
		reason := chatter.reason(err)
		endRelay(&relay.Died{Reason: reason})
		if !ready.Load() {
			err = &notStarted{errors.New("it ended at once: " + reason)}
		}
		err = fmt.Errorf("kernel: %s: %w", found.gonb, err)
	}
	endRelay(nil)
	if failed := <-relayed; failed != nil {
		err = errors.Join(err, fmt.Errorf("kernel: %w", failed))
	}
	return err
}

// longestSocketDir is the longest path of a folder in which a socket fits: the system allows 107
// bytes for the socket's whole path.
const longestSocketDir = 95

// socketDir returns a folder for sockets: the session's own, unless its path is too long.
func socketDir(s *session) (dir string, remove func(), err error) {
	if len(s.dir) <= longestSocketDir {
		return s.dir, func() {}, nil
	}
	if dir, err = os.MkdirTemp("/tmp", "gonbatch-sockets-"); err != nil {
		return "", nil, fmt.Errorf("%w: set TMPDIR to a folder with a shorter path than %s", err, filepath.Dir(s.dir))
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

func (o Options) resolve() (Options, error) {
	if o.ConnectionFile == "" {
		return o, errors.New("no connection file: Jupyter starts the kernel with --connection-file FILE")
	}
	if _, err := os.Stat(o.ConnectionFile); err != nil {
		return o, fmt.Errorf("connection file: %w: Jupyter writes it when it starts the kernel", err)
	}
	env := environment(slices.Clone(o.Environ))
	env.setHome()
	o.Environ = env
	var err error
	o.SourceDir, err = filepath.Abs(o.SourceDir)
	return o, err
}

// watchClient returns a context that ends when the process that started this one is gone, or on
// SIGTERM or SIGHUP. It swallows SIGINT, which is for the running cell: GoNB ends that itself.
func watchClient(ctx context.Context, getppid func() int) (context.Context, context.CancelFunc) {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	client := getppid()
	go func() {
		defer cancel()
		ticker := time.NewTicker(parentPoll)
		defer ticker.Stop()
		for getppid() == client {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return ctx, cancel
}
