package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/rundir"
)

// Hashes caches the SHA-256 of big files by path, size and time, so that an unchanged program is
// read only once.
type Hashes struct {
	path    string
	known   map[string]string
	changed bool
}

// HashesIn returns the hashes that a folder keeps. It treats a file that cannot be read as empty:
// it is only a cache.
func HashesIn(folder string) *Hashes {
	path := filepath.Join(folder, "hashes.json")
	h := &Hashes{path: path}
	if rundir.ReadJSON(path, &h.known) != nil {
		h.known = map[string]string{}
	}
	return h
}

// Of returns the hash of the file at path. It opens the file to get its size and time, because only
// then does NFS ask the server and see what another node has written.
func (h *Hashes) Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("%s\x00%d\x00%d", path, info.Size(), info.ModTime().UnixNano())
	if hash, ok := h.known[key]; ok {
		return hash, nil
	}
	hash, err := hashOf(f)
	if err != nil {
		return "", err
	}
	h.known[key], h.changed = hash, true
	return hash, nil
}

// maxHashes is the limit of the cache, which starts again empty when it is full.
const maxHashes = 1000

// Save writes the hashes to the folder.
func (h *Hashes) Save() error {
	if !h.changed {
		return nil
	}
	if len(h.known) > maxHashes {
		h.known = map[string]string{}
	}
	data, err := json.Marshal(h.known)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o777); err != nil {
		return err
	}
	return rundir.WriteFileAtomic(h.path, data, 0o644)
}

// HashFile returns the SHA-256 of a file, which may be big.
func HashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	return hashOf(f)
}

func hashOf(f *os.File) (string, error) {
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", fmt.Errorf("hash %s: %w", f.Name(), err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// HashBytes returns the SHA-256 of data.
func HashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
