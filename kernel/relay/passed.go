package relay

import (
	"encoding/binary"
	"os"
	"path/filepath"
)

// passedFile is the file in CellDir with the number of output bytes that were passed on to the
// clients.
const passedFile = "passed"

// passed counts the output that was passed on. GoNB accepts any amount of output, and buffers what
// the relay has not read. So the process that runs a cell's programs compares this count with its
// own, and waits.
type passed struct {
	file  *os.File
	count uint64
}

// newPassed creates the file in a session's folder for cells.
func newPassed(cellDir string) (passed, error) {
	file, err := os.Create(filepath.Join(cellDir, passedFile))
	if err != nil {
		return passed{}, err
	}
	p := passed{file: file}
	return p, p.add(0)
}

func (p *passed) add(n int) error {
	p.count += uint64(n)
	_, err := p.file.WriteAt(binary.BigEndian.AppendUint64(nil, p.count), 0)
	return err
}

// Passed returns how many bytes of output the relay with this CellDir has passed on.
func Passed(cellDir string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(cellDir, passedFile))
	if err != nil || len(text) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(text), nil
}
