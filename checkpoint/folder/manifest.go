package folder

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Version is the version of the layout that this package writes, and the newest that it reads.
const Version = 1

// Manifest is the content of checkpoint.json. Draft.Commit fills in Step, Time and Files.
type Manifest struct {
	// Step is the number of updates of the weights so far.
	Step int64 `json:"step"`
	// Time is when the checkpoint was written.
	Time time.Time `json:"time"`
	// WorldSize is the number of ranks that trained.
	WorldSize int `json:"world_size"`
	// CodeHash is the hash of the program's sources, if it is known.
	CodeHash string `json:"code_hash,omitempty"`
	// Versions are the versions of Go and of the libraries.
	Versions map[string]string `json:"versions,omitempty"`
	// Metrics are the metrics by which checkpoints are compared.
	Metrics Metrics `json:"metrics,omitempty"`
	// Progress is the state of each component of the training.
	Progress map[string]json.RawMessage `json:"progress,omitempty"`
	// Files lists all other files in the folder.
	Files []File `json:"files"`
}

// File is a file of a checkpoint.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// ErrNewer reports a checkpoint that a newer version of this package wrote.
var ErrNewer = errors.New("it was written by a newer gonbatch, build the program with that one")

// envelope is the outer object of checkpoint.json, in every version of the layout.
type envelope struct {
	Version    int             `json:"version"`
	SHA256     string          `json:"sha256"`
	Checkpoint json.RawMessage `json:"checkpoint"`
}

// text returns the file's whole text: a reader generates it again and compares, so that it detects
// a change anywhere.
func (e envelope) text() []byte {
	return fmt.Appendf(nil, "{\n\"version\": %d,\n\"sha256\": %q,\n\"checkpoint\": %s\n}\n", e.Version, e.SHA256, e.Checkpoint)
}

// sum returns the checksum of the version and the content.
func (e envelope) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", e.Version)
	h.Write(e.Checkpoint)
	return fmt.Sprintf("%x", h.Sum(nil))
}

func (m Manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // Progress is read back exactly as it was passed in.
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(m); err != nil {
		return nil, err
	}
	e := envelope{Version: Version, Checkpoint: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}
	e.SHA256 = e.sum()
	return e.text(), nil
}

// errDamaged means that a manifest isn't what was written.
var errDamaged = errors.New("it is damaged")

// decodeManifest decodes the text of path's checkpoint.json.
func decodeManifest(path string, text []byte) (Manifest, error) {
	var m Manifest
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return m, fmt.Errorf("%s: %w: %w", manifestName, errDamaged, err)
	}
	if !bytes.Equal(e.text(), text) || e.sum() != e.SHA256 {
		return m, fmt.Errorf("%s: %w: its checksum doesn't match", manifestName, errDamaged)
	}
	if e.Version > Version {
		return m, fmt.Errorf("it has format %d, this program reads up to %d: %w", e.Version, Version, ErrNewer)
	}
	if err := json.Unmarshal(e.Checkpoint, &m); err != nil {
		return m, fmt.Errorf("%s: %w: %w", manifestName, errDamaged, err)
	}
	for name, progress := range m.Progress { // As it was passed in, without the file's indentation.
		var b bytes.Buffer
		if err := json.Compact(&b, progress); err != nil {
			return m, fmt.Errorf("%s: %s: %w", manifestName, name, err)
		}
		m.Progress[name] = b.Bytes()
	}
	return m, m.check(path)
}

// check checks the properties of a manifest on which this package relies: another program may have
// written it.
func (m Manifest) check(path string) error {
	if name := strings.TrimPrefix(filepath.Base(path), replacedPrefix); name != Name(m.Step) {
		if _, ok := stepOf(name); ok {
			return fmt.Errorf("%s is of step %d: the folder was renamed or copied over", manifestName, m.Step)
		}
	}
	for _, f := range m.Files {
		if err := checkFile(f.Name); err != nil {
			return fmt.Errorf("%s: %w", manifestName, err)
		}
	}
	return nil
}

var fileName = regexp.MustCompile(`^[\w-][\w.-]*$`)

func checkFile(name string) error {
	if !fileName.MatchString(name) || !fs.ValidPath(name) || name == manifestName {
		return fmt.Errorf("%q can't be a checkpoint's file: use letters, digits, dots and dashes", name)
	}
	return nil
}
