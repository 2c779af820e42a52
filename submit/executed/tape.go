package executed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// The limits of one cell's output: the notebook must open in a browser whatever the program prints.
const (
	headLimit = 256 << 10 // bytes of text at the beginning
	tailLimit = 256 << 10 // bytes of text at the end
	richLimit = 32 << 20  // bytes of images and other rich output
	richCount = 200       // rich outputs
	itemCost  = 64        // bytes counted for an item besides its text
)

// item is one output: text of a stream, or a rich output.
type item struct {
	stream string // "stdout", "stderr", or "" for a rich output
	text   bytes.Buffer
	rich   json.RawMessage
}

// tape holds the beginning and the end of a cell's output.
type tape struct {
	items []*item
	// headText and tailText are the bytes of text in the head and the tail; the tail begins at
	// items[tailFrom] if full is set.
	headText, tailText, tailFrom int
	full                         bool
	// dropped is the number of bytes of text left out between head and tail.
	dropped int64
	// richBytes and rich are the size and the number of the rich outputs; richDropped counts those
	// left out.
	richBytes, rich, richDropped int
}

// write adds text of a stream.
func (t *tape) write(stream string, text []byte) {
	if !t.full {
		n := min(len(text), max(0, headLimit-t.headText))
		if n > 0 {
			t.headText += t.add(0, stream, text[:n])
			text = text[n:]
		}
		if len(text) == 0 {
			return
		}
		t.full, t.tailFrom = true, len(t.items)
	}
	if over := len(text) - tailLimit; over > 0 {
		t.clearTail()
		t.dropped += int64(over)
		text = text[over:]
	}
	t.tailText += t.add(t.tailFrom, stream, text)
	t.trimTail()
}

// add appends text to the last item, or to a new one if that has another stream or is before
// items[from], and returns its cost.
func (t *tape) add(from int, stream string, text []byte) int {
	cost := len(text)
	if n := len(t.items); n <= from || t.items[n-1].stream != stream {
		t.items = append(t.items, &item{stream: stream})
		cost += itemCost
	}
	t.items[len(t.items)-1].text.Write(text)
	return cost
}

// clearTail drops all text of the tail.
func (t *tape) clearTail() {
	kept := slices.DeleteFunc(t.items[t.tailFrom:], func(it *item) bool {
		t.dropped += int64(it.text.Len())
		return it.stream != ""
	})
	t.items = t.items[:t.tailFrom+len(kept)]
	t.tailText = 0
}

// trimTail drops the tail's oldest text until the rest is within the limit.
func (t *tape) trimTail() {
	for i := t.tailFrom; t.tailText > tailLimit+itemCost && i < len(t.items); {
		it := t.items[i]
		if it.stream == "" {
			i++
			continue
		}
		n := min(t.tailText-tailLimit, it.text.Len())
		it.text.Next(n)
		t.tailText -= n
		t.dropped += int64(n)
		if it.text.Len() == 0 {
			t.items = slices.Delete(t.items, i, i+1)
			t.tailText -= itemCost
		}
	}
}

// show adds a rich output and returns its item, so that it can be replaced; nil if there are too
// many.
func (t *tape) show(output json.RawMessage) *item {
	if t.rich >= richCount || t.richBytes+len(output) > richLimit {
		t.richDropped++
		return nil
	}
	t.rich++
	t.richBytes += len(output)
	it := &item{rich: output}
	t.items = append(t.items, it)
	return it
}

// replace replaces a rich output, unless there would be too much.
func (t *tape) replace(it *item, output json.RawMessage) {
	grown := t.richBytes + len(output) - len(it.rich)
	if grown > richLimit {
		t.richDropped++
		return
	}
	t.richBytes, it.rich = grown, output
}

// fail adds an error, regardless of the limits.
func (t *tape) fail(output json.RawMessage) { t.items = append(t.items, &item{rich: output}) }

// lastText returns the end of a stream's last text, at most n bytes.
func (t *tape) lastText(stream string, n int) string {
	for _, it := range slices.Backward(t.items) {
		if it.stream == stream {
			text := it.text.Bytes()
			return string(text[max(0, len(text)-n):])
		}
	}
	return ""
}

// outputs returns the cell's outputs in the notebook's format.
func (t *tape) outputs(log string) []any {
	list := []any{}
	for i, it := range t.items {
		if t.full && i == t.tailFrom && t.dropped > 0 {
			text := fmt.Sprintf("\n[gonbatch: %d bytes of output are left out here; %s has them all]\n", t.dropped, log)
			list = append(list, stream{"stream", "stderr", text})
		}
		if it.stream == "" {
			list = append(list, it.rich)
		} else {
			list = append(list, stream{"stream", it.stream, it.text.String()})
		}
	}
	if t.richDropped > 0 {
		text := fmt.Sprintf("\n[gonbatch: %d more images and other rich outputs are left out here]\n", t.richDropped)
		list = append(list, stream{"stream", "stderr", text})
	}
	return list
}

// stream is an output of plain text.
type stream struct {
	Type string `json:"output_type"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// failure is an error output.
type failure struct {
	Type      string   `json:"output_type"`
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}
