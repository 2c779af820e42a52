package keep

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"gonbatch/internal/rundir"
)

// headerMark begins every file. The padded hash of the variable's declaration follows.
const headerMark = "gonbatch kept 2 "

func writeHeader(w io.Writer, hash string) error {
	_, err := fmt.Fprintf(w, "%s%-*.*s", headerMark, rundir.KeptHeader-len(headerMark), rundir.KeptHeader-len(headerMark), hash)
	return err
}

// readHeader returns the hash in a file's header.
func readHeader(r io.Reader) (hash string, err error) {
	header := make([]byte, rundir.KeptHeader)
	if _, err := io.ReadFull(r, header); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	rest, ok := strings.CutPrefix(string(header), headerMark)
	if !ok {
		return "", errors.New("the file with the kept value is damaged, or of another version of gonbatch")
	}
	return strings.TrimRight(rest, " "), nil
}
