// Package scratch makes the folders that submit needs among the temporary files, for the time of a
// command or of a job, and removes those that killed commands have left. A kernel's folders begin
// with gonbatch- as well, and are the kernel's own.
//
//	folder, err := scratch.Make(scratch.Module)
//	defer os.RemoveAll(folder)
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Kind is what a folder is for. Its name begins with that.
type Kind string

// The kinds of folders.
const (
	// Recorder has the socket of a recorder, Socket.
	Recorder Kind = "gonbatch-recorder-"
	// Module has a Go module that is just being compiled.
	Module Kind = "gonbatch-module-"
	// Preflight has the notebook of a preflight that writes nothing.
	Preflight Kind = "gonbatch-preflight-"
	// Forecast has the question to a program, and its answer.
	Forecast Kind = "gonbatch-forecast-"
)

// Socket is the name of a recorder's socket in its folder.
const Socket = "socket"

// Make makes a folder.
func Make(kind Kind) (folder string, err error) {
	folder, err = os.MkdirTemp("", string(kind)+"*")
	var path *fs.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("no folder can be made among the temporary files in %s: %w; make that folder, free some space there, or set TMPDIR to another", os.TempDir(), path.Err)
	}
	return folder, err
}

// A folder is left alone while its owner may just be about to use it.
const (
	socketAge = time.Minute
	folderAge = 24 * time.Hour
)

// Sweep removes what commands of this user that were killed have left among the temporary files:
// folders with a recorder's socket that nobody serves, and any that are a day old.
func Sweep(temporary string, now time.Time) {
	var folders []string
	for _, kind := range []Kind{Recorder, Module, Preflight, Forecast} {
		found, _ := filepath.Glob(filepath.Join(temporary, string(kind)+"*")) // The patterns are good.
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !mine(info) {
			continue
		}
		if left(folder, now.Sub(info.ModTime())) {
			_ = os.RemoveAll(folder) // What is left now is swept another time.
		}
	}
}

func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// left reports whether a folder of that age has nobody who uses it.
func left(folder string, age time.Duration) bool {
	socket := filepath.Join(folder, Socket)
	if _, err := os.Stat(socket); err != nil {
		return age > folderAge
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return age > socketAge && errors.Is(err, syscall.ECONNREFUSED)
}
