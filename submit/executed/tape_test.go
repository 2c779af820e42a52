package executed

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streams returns what a tape's streams contain, each with its name.
func streams(t *tape) (all []string) {
	for _, output := range t.outputs("logs/rank-0.log") {
		switch o := output.(type) {
		case stream:
			all = append(all, o.Name+": "+o.Text)
		case json.RawMessage:
			all = append(all, "rich: "+string(o))
		}
	}
	return all
}

func TestTapeKeepsOrder(t *testing.T) {
	var tp tape
	tp.write("stdout", []byte("a"))
	tp.write("stdout", []byte("b\n"))
	tp.write("stderr", []byte("c"))
	tp.show(json.RawMessage(`1`))
	tp.write("stderr", []byte("d"))
	want := []string{"stdout: ab\n", "stderr: c", "rich: 1", "stderr: d"}
	if diff := cmp.Diff(want, streams(&tp)); diff != "" {
		t.Error(diff)
	}
}

// TestTapeIsBounded: a tape keeps the beginning and the end of very long output, and says how much
// it left out.
func TestTapeIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		chunk int
		two   bool
	}{
		{"lines", 1, false}, {"two streams in turns", 1, true}, {"big chunks", 50_000, false}, {"chunks above the limit", 100_000, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tp tape
			written, lines := 0, 300_000/tt.chunk
			for i := 0; i < lines; i++ {
				name := "stdout"
				if tt.two && i%2 == 1 {
					name = "stderr"
				}
				text := []byte(strings.Repeat(fmt.Sprintf("line %d\n", i), tt.chunk))
				written += len(text)
				tp.write(name, text)
			}
			kept := int64(0)
			for _, it := range tp.items {
				kept += int64(it.text.Len())
			}
			if kept+tp.dropped != int64(written) {
				t.Errorf("kept %d and dropped %d of %d bytes", kept, tp.dropped, written)
			}
			if kept > headLimit+tailLimit+itemCost || kept < headLimit && !tt.two {
				t.Errorf("%d bytes are kept", kept)
			}
			all := strings.Join(streams(&tp), "\n")
			if !strings.Contains(all, "line 0\n") || !strings.Contains(all, fmt.Sprintf("line %d\n", lines-1)) {
				t.Error("the beginning or the end is lost")
			}
			if note := fmt.Sprintf("[gonbatch: %d bytes of output are left out here; logs/rank-0.log has them all]", tp.dropped); tp.dropped > 0 && strings.Count(all, note) != 1 {
				t.Errorf("it is not said that %d bytes are left out", tp.dropped)
			}
		})
	}
}

func TestTapeBoundsRichOutput(t *testing.T) {
	var tp tape
	big := json.RawMessage(`"` + strings.Repeat("x", richLimit/4) + `"`)
	for range 5 {
		tp.show(big)
	}
	for range richCount + 7 {
		tp.show(json.RawMessage(`0`))
	}
	all := streams(&tp)
	if last := all[len(all)-1]; tp.rich != richCount || !strings.Contains(last, fmt.Sprintf("%d more images", tp.richDropped)) || tp.richDropped != 5+7 {
		t.Errorf("%d kept, %d dropped, %s", tp.rich, tp.richDropped, last)
	}
}
