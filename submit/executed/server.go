package executed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"gonbatch/internal/plural"
)

const (
	// saveInterval is the shortest time between two writes of the notebook.
	saveInterval = time.Second
	// saveShare limits the share of time spent writing to 1/20: a notebook that takes 0.2 s is
	// written every 4 s.
	saveShare = 20
	// outputLimit is how long to wait for the end of a program's output once another program runs
	// or the job has ended.
	outputLimit = 5 * time.Second
)

// Recording is a run that is being recorded. It receives the output of programs through Attach, and
// writes the notebook as it grows.
type Recording struct {
	// folder has the socket, and is removed with it; "" if it isn't ours.
	folder   string
	recorder *Recorder
	listener *net.UnixListener
	problem  func(error)

	mu   sync.Mutex
	feed *feed

	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// listen starts a recording at a socket, which must be a path of less than 108 bytes on a local
// file system. problem gets later errors: a notebook that cannot be written does not end the job.
func listen(socket string, r *Recorder, problem func(error)) (*Recording, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("recorder: %w", err)
	}
	s := &Recording{recorder: r, listener: listener, problem: problem, stop: make(chan struct{})}
	s.stopped.Go(s.accept)
	s.stopped.Go(s.save)
	return s, nil
}

// accept serves one request after another.
func (s *Recording) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.problem(fmt.Errorf("recorder: %w", err))
			time.Sleep(time.Second) // It may last, as where there are too many open files.
			continue
		}
		if err := s.serve(conn); err != nil && !errors.Is(err, io.EOF) { // Somebody only checked whether the recorder is there.
			s.problem(fmt.Errorf("recorder: %w", err))
		}
	}
}

// serve answers one request.
func (s *Recording) serve(conn *net.UnixConn) error {
	defer conn.Close() //nolint:errcheck // the answer is sent, or serve returns why not
	if err := conn.SetDeadline(time.Now().Add(askLimit)); err != nil {
		return err
	}
	r, files, err := receive(conn)
	if errors.Is(err, io.EOF) {
		return err
	}
	if err == nil && len(files) != feedFiles {
		err = fmt.Errorf("a request with %s, want %d", plural.Of(len(files), "file"), feedFiles)
	}
	if err == nil {
		s.Drain()
		err = s.recorder.Begin(r.Attach)
	}
	answer := reply{}
	if err != nil {
		for _, f := range files {
			_ = f.Close()
		}
		answer.Error = err.Error()
	} else {
		s.mu.Lock()
		s.feed = newFeed(s.recorder, files)
		s.mu.Unlock()
	}
	return json.NewEncoder(conn).Encode(answer)
}

// Drain waits until the log and the notebook have all output of the last program, which must have
// ended.
func (s *Recording) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed != nil {
		s.feed.wait(outputLimit)
		s.feed = nil
		s.recorder.showResult()
	}
}

// save writes the notebook from time to time if it has changed.
func (s *Recording) save() {
	pause := saveInterval
	for {
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
		start := time.Now()
		if err := s.recorder.Save(); err != nil {
			s.problem(err)
		}
		pause = max(saveInterval, saveShare*time.Since(start))
	}
}

// End notes how the job ended, writes the notebook and stops the recording.
func (s *Recording) End(o Outcome) error {
	s.Drain()
	s.recorder.End(o)
	return s.Close()
}

// Close stops the recording and writes the notebook in its current state.
func (s *Recording) Close() error {
	s.once.Do(func() {
		close(s.stop)
		_ = s.listener.Close()
	})
	s.stopped.Wait()
	return errors.Join(s.recorder.Save(), os.RemoveAll(s.folder))
}
