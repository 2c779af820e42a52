package relay

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// lacksRoom matches what programs write when a disk or a quota is full. GoNB says "wrote only".
var lacksRoom = regexp.MustCompile(`(?i)no space left on device|disk quota exceeded|I/O error|bytes: wrote only`)

// leastRoom is the room in bytes below which a disk counts as full: a build writes more.
const leastRoom = 4 << 20

// roomRemedy says what to do if the session's folder is full; "" if a failure's text does not point
// to that.
func (r *relay) roomRemedy(text string) string {
	dir := filepath.Dir(r.opts.CellDir)
	if !lacksRoom.MatchString(text) || !isFull(dir) && !strings.Contains(text, dir) {
		return ""
	}
	return fullRemedy(dir)
}

func fullRemedy(dir string) string {
	return fmt.Sprintf("the session's folder is full: %s; remove what cells have left in $TMPDIR, or start Jupyter with TMPDIR set to a larger folder", dir)
}

// isFull reports whether the disk of a folder is nearly full.
func isFull(dir string) bool {
	var disk unix.Statfs_t
	return unix.Statfs(dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) < leastRoom
}

// withRoomRemedy adds the remedy for a full session folder to a failure.
func (f *failure) withRoomRemedy(r *relay) *failure {
	if f == nil {
		return nil
	}
	if remedy := r.roomRemedy(f.value + strings.Join(f.traceback, "\n")); remedy != "" && !strings.Contains(f.value, remedy) {
		f.value = strings.TrimSpace(f.value) + "\n" + remedy
		f.traceback = append(f.traceback, red+remedy+plain)
	}
	return f
}
