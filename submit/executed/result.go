package executed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gonbatch/internal/rundir"
)

// showResult shows the value of the last expression of the program that has ended, which package
// display left in a file: a plot, an image, a table. Its text is in the program's output.
func (r *Recorder) showResult() {
	file := r.dir.Result()
	text, err := rundir.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	output := rich{Type: "display_data", Metadata: map[string]any{}}
	if err == nil {
		err = json.Unmarshal(text, &output.Data)
	}
	var shown []byte
	if err == nil {
		shown, err = json.Marshal(output)
	}
	if err != nil {
		r.write("stderr", fmt.Appendf(nil, "[gonbatch: the cell's result can't be shown: %v]\n", err))
		return
	}
	r.show("", shown)
	_ = os.Remove(file) // The next program's attach removes it too.
}
