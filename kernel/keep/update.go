package keep

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// chunk is the number of bytes compared at once.
const chunk = 1 << 20

// update writes a new version of an old file to the file called name, which may be the old one. It
// writes nothing as long as the new bytes equal the old ones: most cells leave a kept model
// unchanged, and reading a large file is much faster than writing one.
type update struct {
	name string
	// old is the old file; nil if there is none. info is its state when it was opened.
	old  *os.File
	info os.FileInfo
	// same is the number of leading bytes in which both agree.
	same int64
	// buffer is for bytes of the old file.
	buffer []byte
	// draft is the new version; nil while it doesn't differ.
	draft *os.File
}

// newUpdate begins a new version. An empty old name means that there is no old file.
func newUpdate(name, old string) (*update, error) {
	u := &update{name: name}
	f, err := os.Open(old)
	if old == "" || errors.Is(err, fs.ErrNotExist) {
		return u, u.differ()
	}
	if err != nil {
		return nil, err
	}
	u.old, u.buffer = f, make([]byte, chunk)
	if u.info, err = f.Stat(); err != nil {
		u.closeOld()
	}
	return u, err
}

// differ begins the draft with the bytes that equal the old file's.
func (u *update) differ() (err error) {
	if u.draft, err = os.OpenFile(u.name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil || u.old == nil {
		return err
	}
	if _, err := u.old.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.CopyN(u.draft, u.old, u.same)
	return err
}

func (u *update) Write(text []byte) (int, error) {
	written := 0
	for u.draft == nil && written < len(text) {
		next := text[written:min(written+len(u.buffer), len(text))]
		if u.agrees(next) {
			written += len(next)
			continue
		}
		if err := u.differ(); err != nil {
			return written, err
		}
	}
	if u.draft == nil || written == len(text) {
		return written, nil
	}
	n, err := u.draft.Write(text[written:])
	return written + n, err
}

// agrees reports whether text, which fits in the buffer, comes next in the old file.
func (u *update) agrees(text []byte) bool {
	if !isUntouched(text, u.info, u.same) {
		buffer := u.buffer[:len(text)]
		if _, err := u.old.ReadAt(buffer, u.same); err != nil || !bytes.Equal(buffer, text) {
			return false
		}
	}
	u.same += int64(len(text))
	return true
}

// Carry makes the file the same as the old one.
func (u *update) Carry() error {
	if err := u.drop(); err != nil {
		u.closeOld()
		return err
	}
	u.same = u.info.Size()
	return u.Commit()
}

// Commit replaces the file with the new version.
func (u *update) Commit() error {
	if u.draft == nil {
		if linked, err := u.link(); linked || err != nil {
			u.closeOld()
			return err
		}
		if err := u.differ(); err != nil {
			return errors.Join(err, u.Discard())
		}
	}
	if err := u.draft.Close(); err != nil {
		return errors.Join(err, u.Discard())
	}
	u.closeOld()
	return os.Rename(u.draft.Name(), u.name)
}

// link reuses the old file as the new one, if nothing differs and the file system supports it. The
// old file's name may have passed to a newer one by now: then it reports false.
func (u *update) link() (bool, error) {
	if u.info.Size() != u.same {
		return false, nil
	}
	if u.old.Name() == u.name {
		return true, nil
	}
	if err := os.Remove(u.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if os.Link(u.old.Name(), u.name) != nil {
		return false, nil
	}
	linked, err := os.Stat(u.name)
	return err == nil && os.SameFile(u.info, linked), nil
}

// Discard leaves the file as it was.
func (u *update) Discard() error {
	u.closeOld()
	return u.drop()
}

// drop removes the draft.
func (u *update) drop() error {
	if u.draft == nil {
		return nil
	}
	name := u.draft.Name()
	_ = u.draft.Close() // It is removed.
	u.draft = nil
	return os.Remove(name)
}

func (u *update) closeOld() {
	if u.old != nil {
		_ = u.old.Close() // It was only read.
	}
}
