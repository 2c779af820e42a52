package fetch_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/fetch"
)

func TestWriteFile(t *testing.T) {
	tests := []struct {
		name    string
		r       io.Reader
		size    int64
		sum     string
		wantErr string
	}{
		{"unchecked", strings.NewReader("new"), 0, "", ""},
		{"checked", strings.NewReader("new"), 3, sum([]byte("new")), ""},
		{"wrong size", strings.NewReader("new"), 4, "", "3 bytes, not 4"},
		{"wrong sum", strings.NewReader("new"), 0, sum([]byte("old")), "wrong checksum"},
		{"reader fails", io.MultiReader(strings.NewReader("ne"), broken{}), 0, "", "broken"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			write(t, path, []byte("old"))
			err := fetch.WriteFile(path, tc.r, tc.size, tc.sum)
			want := "new"
			if tc.wantErr != "" {
				want = "old"
				checkError(t, err, []string{tc.wantErr}, nil)
			} else if err != nil {
				t.Error(err)
			}
			checkFile(t, path, []byte(want))
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
