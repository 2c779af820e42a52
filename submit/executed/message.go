package executed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// request asks the recorder to take the output of a cell's program. It carries the program's
// descriptors, in the order of feedFiles. A resumed run may have another version's programs, so
// requests and answers stay as they are.
type request struct {
	Attach string `json:"attach"`
}

// reply is the recorder's answer; Error is empty if the request succeeded.
type reply struct {
	Error string `json:"error,omitempty"`
}

const (
	// feedFiles is the number of descriptors of a request: stdout, stderr and rich output to read,
	// answers to write, one to hold as long as the recorder lives, and the log.
	feedFiles = 6
	// askLimit is how long an answer may take. A program must not wait forever for its recorder.
	askLimit = 30 * time.Second
)

// ask sends a request to the recorder at a socket, with descriptors, and waits for the answer.
func ask(socket string, r request, fds []int) error {
	conn, err := net.DialTimeout("unix", socket, askLimit)
	if err != nil {
		return err
	}
	defer conn.Close()
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(askLimit)); err != nil {
		return err
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(data, unix.UnixRights(fds...), nil); err != nil {
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

// receive reads a request and its descriptors. The error is io.EOF if there is none.
func receive(conn *net.UnixConn) (r request, files []*os.File, err error) {
	text := make([]byte, 4<<10)
	rights := make([]byte, unix.CmsgSpace(feedFiles*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(text, rights)
	if err == nil {
		files, err = filesOf(rights[:oobn])
	}
	if err == nil {
		err = json.NewDecoder(io.MultiReader(bytes.NewReader(text[:n]), conn)).Decode(&r)
	}
	return r, files, err
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
