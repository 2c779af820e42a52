package executed

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxText is more than the length of a cell's name, and of any answer.
	maxText = 64 << 10
	// feedFiles is the number of descriptors of a request: stdout, stderr and rich output to read,
	// answers to write, one to hold as long as the recorder lives, and the log.
	feedFiles = 6
	// askLimit is how long an answer may take. A program must not wait forever for its recorder.
	askLimit = 30 * time.Second
	// attached is the answer to a request that succeeded; any other is an error.
	attached = "attached"
)

// ask asks the recorder at a socket to take the output of a cell's program, whose descriptors it
// passes, in the order of feedFiles.
func ask(socket, cell string, fds []int) error {
	conn, err := net.DialTimeout("unixpacket", socket, askLimit)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(askLimit)); err != nil {
		return err
	}
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix([]byte(cell), unix.UnixRights(fds...), nil); err != nil {
		return err
	}
	answer := make([]byte, maxText)
	n, err := conn.Read(answer)
	if err != nil {
		return fmt.Errorf("the recorder did not answer: %w", err)
	}
	if text := string(answer[:n]); text != attached {
		return errors.New(text)
	}
	return nil
}

// receive reads a request: a cell, and its program's descriptors.
func receive(conn *net.UnixConn) (cell string, files []*os.File, err error) {
	text := make([]byte, maxText)
	rights := make([]byte, unix.CmsgSpace(feedFiles*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(text, rights)
	if err == nil {
		files, err = filesOf(rights[:oobn])
	}
	return string(text[:n]), files, err
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
