package compilecache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ending is the extension of entries.
const ending = ".program"

// format is the first line of an entry. A different layout gets another number.
const format = "gonbatch program 1"

// errForeign means that this package has not written the entry completely, so that it is skipped.
var errForeign = errors.New("it is damaged, or not from this cache")

func (c *Cache) path(key Key) string { return filepath.Join(c.dir, key.String()+ending) }

// encode prepends a header to a program: the format, the key, the program's checksum and its name,
// one per line. The checksum also covers the name.
func encode(key Key, name string, program []byte) []byte {
	name = strings.Join(strings.Fields(name), " ")
	return append(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n", format, key, checksum(name, program), name), program...)
}

func checksum(name string, program []byte) Key {
	return NewHash().Add("name", []byte(name)).Add("program", program).Key()
}

// decode returns the program in an entry.
func decode(key Key, entry []byte) ([]byte, error) {
	const lines = 4
	parts := bytes.SplitN(entry, []byte("\n"), lines+1)
	if len(parts) != lines+1 || string(parts[0]) != format || string(parts[1]) != key.String() {
		return nil, errForeign
	}
	name, program := string(parts[3]), parts[4]
	if string(parts[2]) != checksum(name, program).String() {
		return nil, errForeign
	}
	return program, nil
}

// read returns the program for a key.
func (c *Cache) read(key Key) ([]byte, error) {
	f, err := openOwn(c.path(key))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	entry, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return decode(key, entry)
}

// openOwn opens a file that only this user can have written.
func openOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || !ownedAlone(info)) {
		err = errForeign
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ownedAlone reports whether the file or folder belongs to this user, and nobody else may write to
// it.
func ownedAlone(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// write stores a program. Readers see the whole entry or none. It isn't synced: after a power
// failure, the checksum detects damage.
func (c *Cache) write(key Key, name string, program []byte) (err error) {
	f, err := os.CreateTemp(c.dir, temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(encode(key, name, program))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.path(key))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
