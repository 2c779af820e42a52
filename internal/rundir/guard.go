package rundir

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// A run root may be shared: what is in it may have been written by a user who means harm. Whatever
// reads a file there goes through Open or ReadFile. Only the owner of a run writes in it or acts on
// it, which CheckOwner decides, and CheckPrivate for the other folders that submit keeps there.

// The files of a run that are read as a whole are small, but an executed notebook may have many
// images.
const (
	smallFile = 16 << 20
	bigFile   = 2 << 30
)

// Open opens a regular file to be read. Anything else is an error at once: opening a named pipe
// would wait for a writer.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is no regular file but %s", info.Mode().Type())}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile reads a regular file as a whole. It refuses one that is larger than any file of a run,
// except a notebook.
func ReadFile(path string) ([]byte, error) { return readUpTo(path, smallFile) }

// ReadNotebook is ReadFile for a notebook.
func ReadNotebook(path string) ([]byte, error) { return readUpTo(path, bigFile) }

func readUpTo(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d MB", limit>>20)}
	}
	return text, nil
}

// CheckOwner refuses a run of another user. It can be looked at, but who can write there can have
// it claim any job or process, and replace any file in it by a link to one of this user's.
func (d Dir) CheckOwner() error {
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		if of, ok := statOf(stat(d.path)); ok && int(of.Uid) != os.Geteuid() {
			return fmt.Errorf("run %s belongs to another user (uid %d), who alone can change it: %w", d.Name(), of.Uid, fs.ErrPermission)
		}
	}
	return nil
}

// CheckShared returns a warning about a run root in which other users can rename this user's runs,
// and put theirs in place of them; nil if they cannot.
func CheckShared(root string) error {
	info, err := os.Stat(root)
	of, ok := statOf(info, err)
	switch {
	case ok && of.Uid != 0 && int(of.Uid) != os.Geteuid():
		return fmt.Errorf("the run root %s belongs to another user (uid %d), who can replace the programs of your jobs; choose another --run-root", root, of.Uid)
	case !ok || info.Mode()&fs.ModeSticky != 0:
		return nil
	}
	private := of.Gid == of.Uid // The user's own group, as most systems number it.
	if perm := info.Mode().Perm(); perm&0o002 == 0 && (perm&0o020 == 0 || private) {
		return nil
	}
	return fmt.Errorf("other users can write in the run root %s, and so replace the programs of your jobs: chmod +t %[1]s prevents that", root)
}

// CheckPrivate refuses a folder that is not this user's alone: another user could have put a link
// in its place, or could change what is in it. A folder that does not exist is fine.
func CheckPrivate(folder string) error {
	info, err := os.Lstat(folder)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder but %s, which somebody has put there: it isn't used; choose another --run-root", folder, info.Mode().Type())
	case ok && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (uid %d): it isn't used; choose another --run-root", folder, stat.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users may write in %s: it isn't used; take that right away with chmod go-w %[1]s", folder)
	}
	return nil
}

// Printable returns a text for people with its control characters escaped, except newlines and
// tabs, and those that change the direction of writing: what another user has written must not
// reach the terminal as a command.
func Printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, "\\u%04x", r)
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && r != utf8.RuneError:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\x%02x", r)
		}
	}
	return b.String()
}

// statOf returns the owner, group and permissions in the file system's information about a file.
func statOf(info fs.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil {
		return nil, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return stat, ok
}
