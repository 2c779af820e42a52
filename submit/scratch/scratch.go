// Package scratch creates submit's temporary folders, which last as long as a command or a job, and
// removes those that killed commands have left behind. The kernel's folders also begin with
// gonbatch-; scratch leaves them alone.
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

// Kind is a kind of folder. The folder's name begins with it.
type Kind string

// The kinds of folders.
const (
	// Recorder folders hold a recorder's socket, Socket.
	Recorder Kind = "gonbatch-recorder-"
	// Module folders hold a Go module that is being compiled.
	Module Kind = "gonbatch-module-"
	// Setup folders hold the state that a job's setup has left.
	Setup Kind = "gonbatch-setup-"
	// Plan folders hold the script of a job that isn't queued.
	Plan Kind = "gonbatch-plan-"
	// Preflight folders hold the notebook of a preflight's dry run.
	Preflight Kind = "gonbatch-preflight-"
	// Forecast folders hold the question to a program, and its answer.
	Forecast Kind = "gonbatch-forecast-"
)

// Socket is the name of a recorder's socket in its folder.
const Socket = "socket"

// Make creates a folder.
func Make(kind Kind) (folder string, err error) {
	folder, err = os.MkdirTemp("", string(kind)+"*")
	var path *fs.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("no folder can be made among the temporary files in %s: %w; make that folder, free some space there, or set TMPDIR to another", os.TempDir(), path.Err)
	}
	return folder, err
}

// Younger folders are left alone: their owner may be about to use them.
const (
	socketAge = time.Minute
	folderAge = 24 * time.Hour
)

// Sweep removes the temporary folders that this user's killed commands have left behind: those with
// a recorder's socket that nobody serves, and those without a socket that are a day old.
func Sweep(temporary string, now time.Time) {
	var folders []string
	for _, kind := range []Kind{Recorder, Module, Plan, Preflight, Forecast} {
		found, _ := filepath.Glob(filepath.Join(temporary, string(kind)+"*")) // The patterns are valid.
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !mine(info) {
			continue
		}
		if left(folder, now.Sub(info.ModTime())) {
			_ = os.RemoveAll(folder) // The next Sweep removes what this one can't.
		}
	}
}

func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// left reports whether a folder of that age is no longer in use.
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
