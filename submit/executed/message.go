package executed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// request is a program's request to connect its output to a server. It carries the program's
// descriptors, in the order of feedFiles.
type request struct {
	// Attach is the cell.
	Attach string `json:"attach"`
}

// reply is the server's answer; Error is empty if the request succeeded.
type reply struct {
	Error string `json:"error,omitempty"`
}

const (
	// maxRequest is more than the size of any request.
	maxRequest = 64 << 10
	// feedFiles is the number of descriptors of an attach request: stdout, stderr and rich output
	// to read, answers to write, one to hold as long as the recorder lives, and the log.
	feedFiles = 6
	// askLimit is how long an answer may take. A program must not wait forever for its recorder.
	askLimit = 30 * time.Second
)

// ask sends a request to the server at a socket, with descriptors, and waits for the answer.
func ask(socket string, r request, fds ...int) error {
	conn, err := net.DialTimeout("unix", socket, askLimit)
	if err != nil {
		return err
	}
	defer conn.Close()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(data) > maxRequest {
		return fmt.Errorf("a request of %d bytes, want at most %d", len(data), maxRequest)
	}
	if err := conn.SetDeadline(time.Now().Add(askLimit)); err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(data, rights, nil); err != nil {
		return err
	}
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	var answer reply
	if err := json.NewDecoder(conn).Decode(&answer); err != nil {
		return fmt.Errorf("the recorder did not answer: %w", err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// receive reads a request and its descriptors.
func receive(conn *net.UnixConn) (r request, files []*os.File, err error) {
	data := make([]byte, maxRequest)
	rights := make([]byte, unix.CmsgSpace(feedFiles*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(data, rights)
	if err == nil && n == 0 {
		err = io.EOF // Somebody only checked whether the socket is served.
	}
	if err != nil {
		return r, nil, err
	}
	if files, err = filesOf(rights[:oobn]); err != nil {
		return r, nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(conn, int64(maxRequest-n)))
	if err == nil {
		err = json.Unmarshal(append(data[:n], rest...), &r)
	}
	if err != nil {
		closeAll(files)
		return r, nil, fmt.Errorf("request: %w", err)
	}
	return r, files, nil
}

// filesOf takes the descriptors out of a control message. They can be read and closed concurrently.
func filesOf(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for i, fd := range fds {
			if i < feedFiles-1 { // Other processes share the log's descriptor, so it must stay blocking.
				_ = unix.SetNonblock(fd, true)
			}
			files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("fd-%d", fd)))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
