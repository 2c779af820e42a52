package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// sumsFile is the file in CellDir with the hashes of kept values.
const sumsFile = "sums.json"

// sums remembers the hashes of files, because hashing a kept model of 100 MB takes 0.1 s.
type sums struct {
	// file has the hashes of earlier cells.
	file  string
	known map[string]fileSum
}

// fileSum is the hash of a file's content, and what shows that the file is still the same.
type fileSum struct {
	Inode          uint64
	Size           int64
	Modified, Meta syscall.Timespec
	Sum            string
}

func readSums(file string) *sums {
	s := &sums{file, map[string]fileSum{}}
	if text, err := os.ReadFile(file); err == nil && (json.Unmarshal(text, &s.known) != nil || s.known == nil) {
		s.known = map[string]fileSum{} // They are computed again.
	}
	return s
}

// of returns the hash of a file's content.
func (s *sums) of(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fs.ErrInvalid)
	}
	stat := info.Sys().(*syscall.Stat_t)
	now := fileSum{Inode: stat.Ino, Size: stat.Size, Modified: stat.Mtim, Meta: stat.Ctim}
	known := s.known[name]
	now.Sum = known.Sum
	if now == known {
		return now.Sum, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	now.Sum = hex.EncodeToString(sum.Sum(nil))
	s.known[name] = now
	if text, err := json.Marshal(s.known); err == nil {
		_ = os.WriteFile(s.file, text, 0o600) // Otherwise it is computed again.
	}
	return now.Sum, nil
}
