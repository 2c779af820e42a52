package relay

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gonbatch/kernel/wire"
)

// TestAssist asks for completion and inspection of magics; requests about Go go to the
// Assistant.
func TestAssist(t *testing.T) {
	b := start(t)
	tests := []struct {
		name, request, code string
		want                []string // matches, or what the text has
		start               int
	}{
		{name: "names", request: "complete", code: "%sub", want: []string{"%submit"}},
		{name: "cell magics", request: "complete", code: "var ä int\n%%s", want: []string{"%%script", "%%sh", "%%submit"}, start: 10},
		{name: "on Windows", request: "complete", code: "var ä int\r\n\r\n%sub", want: []string{"%submit"}, start: 13},
		{name: "GoNB's too", request: "complete", code: "%no", want: []string{"%noautoget"}},
		{name: "none", request: "complete", code: "%zzz", want: nil},
		{name: "in a script", request: "complete", code: "%%bash\n%su", want: nil, start: -1},
		{name: "arguments", request: "complete", code: "%time\n//gonb:%reset go", want: []string{"go.mod"}, start: 20},
		{name: "GoNB's magics", request: "inspect", code: "%env A b", want: []string{"Set an environment variable."}},
		{name: "inspect", request: "inspect", code: "%keep x", want: []string{"for later cells"}},
		{name: "Go is not ours", request: "complete", code: "fmt.Pr", want: nil, start: -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.ask(tt.request+"_request", object{"code": tt.code, "cursor_pos": len([]rune(tt.code))})
			reply := b.next()
			var content struct {
				Matches []string          `json:"matches"`
				Start   int               `json:"cursor_start"`
				Data    map[string]string `json:"data"`
			}
			if err := json.Unmarshal(reply.Content, &content); err != nil {
				t.Fatal(err)
			}
			if tt.request == "inspect" {
				if !strings.Contains(content.Data["text/plain"], tt.want[0]) {
					t.Errorf("%s", reply.Content)
				}
				return
			}
			if !slices.Equal(content.Matches, tt.want) || tt.start >= 0 && content.Start != tt.start {
				t.Errorf("%s, want %q from %d", reply.Content, tt.want, tt.start)
			}
		})
	}
}

func TestAddHelp(t *testing.T) {
	m, err := wire.New("display_data", object{"data": object{"text/markdown": "GoNB"}, "metadata": object{}})
	if err != nil {
		t.Fatal(err)
	}
	addHelp(m)
	if text := string(m.Content); !strings.Contains(text, "%%submit") || !strings.Contains(text, "GoNB") {
		t.Error(text)
	}
}

func TestReadCursor(t *testing.T) {
	const code = "aä\r\nb\r\n"
	for at, want := range []cursor{{At: 0}, {At: 1}, {At: 2}, {At: 2, removed: 1}, {At: 3, removed: 1}, {At: 4, removed: 1}, {At: 4, removed: 2}, {At: 5, removed: 2}} {
		got, err := readCursor(must(json.Marshal(object{"code": code, "cursor_pos": at})))
		if want.Code = "aä\nb\n"; err != nil || got != want {
			t.Errorf("at %d: %+v, %v; want %+v", at, got, err, want)
		}
	}
}
