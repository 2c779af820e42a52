package executed

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// page is a screen that records what is shown.
type page struct {
	order []string
	told  []string
	syncs []int
}

func (p *page) show(_ string, output json.RawMessage) { p.order = append(p.order, string(output)) }
func (p *page) tell(line string)                      { p.told = append(p.told, line) }
func (p *page) synced(id int)                         { p.syncs = append(p.syncs, id) }

// encoded returns messages as gonbui sends them.
func encoded(t testing.TB, messages ...map[protocol.MIMEType]any) []byte {
	t.Helper()
	var b bytes.Buffer
	encoder := gob.NewEncoder(&b)
	for _, data := range messages {
		if err := encoder.Encode(&protocol.DisplayData{Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestDisplays(t *testing.T) {
	type data = map[protocol.MIMEType]any
	tests := []struct {
		name string
		data data
		want string
	}{
		{"HTML", data{"text/html": "<b>é</b>"}, `{"text/html":"<b>é</b>"}`},
		{"an image", data{"image/png": []byte("\x89PNG")}, `{"image/png":"iVBORw=="}`},
		{"an image's bytes that are text", data{"image/png": []byte("GIF8")}, `{"image/png":"R0lGOA=="}`},
		{"SVG as bytes", data{"image/svg+xml": []byte("<svg/>")}, `{"image/svg+xml":"<svg/>"}`},
		{"JSON", data{"application/vnd.plotly.v1+json": map[string]any{"data": []any{1, "x"}}}, `{"application/vnd.plotly.v1+json":{"data":[1,"x"]}}`},
		{"JSON as text", data{"application/json": `{"a": 1}`}, `{"application/json":{"a":1}}`},
		{"no JSON", data{"application/json": `{"a"`}, `{"application/json":"{\"a\""}`},
		{"a number as text", data{"text/plain": 7}, `{"text/plain":"7"}`},
		{"a NaN", data{"application/json": math.NaN()}, `{"application/json":"NaN"}`},
		{"no type", data{"nothing": "x"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p page
			if err := readDisplays(bytes.NewReader(encoded(t, tt.data)), &p); err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if len(p.order) > 0 {
					t.Errorf("shows %q", p.order)
				}
				return
			}
			if len(p.order) != 1 {
				t.Fatalf("shows %q", p.order)
			}
			var got struct {
				Data json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal([]byte(p.order[0]), &got); err != nil {
				t.Fatal(err)
			}
			var a, b any
			if json.Unmarshal(got.Data, &a) != nil || json.Unmarshal([]byte(tt.want), &b) != nil || !cmp.Equal(a, b) {
				t.Errorf("got %s, want %s", got.Data, tt.want)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	var p page
	err := readDisplays(bytes.NewReader(encoded(t,
		map[protocol.MIMEType]any{protocol.MIMECommValue: &protocol.CommValue{Address: protocol.GonbuiSyncAddress, Value: 3}},
		map[protocol.MIMEType]any{protocol.MIMEJupyterInput: &protocol.InputRequest{Prompt: "name?"}},
		map[protocol.MIMEType]any{protocol.MIMECommSubscribe: &protocol.CommSubscription{Address: "x"}},
		map[protocol.MIMEType]any{protocol.MIMECommSubscribe: &protocol.CommSubscription{Address: "x", Unsubscribe: true}},
		map[protocol.MIMEType]any{protocol.MIMECommValue: &protocol.CommValue{Address: "x", Value: "y"}},
		map[protocol.MIMEType]any{protocol.MIMECommValue: &protocol.CommValue{Address: "x", Request: true}},
	)), &p)
	if err != nil {
		t.Fatal(err)
	}
	want := page{syncs: []int{3}, told: []string{
		`the program asks for input ("name?"), and a job has none`,
		`the program listens to "x" in the notebook's page, and a job has no page`,
		`the program reads "x" from the notebook's page and may wait for it forever: a job has no page`,
	}}
	if diff := cmp.Diff(want, p, cmp.AllowUnexported(page{})); diff != "" {
		t.Error(diff)
	}
}

// FuzzDisplays: whatever comes through the pipe is shown as valid JSON or refused.
func FuzzDisplays(f *testing.F) {
	type data = map[protocol.MIMEType]any
	f.Add(encoded(f, data{"text/html": "<b>"}, data{"image/png": []byte{1, 2}}))
	f.Add(encoded(f, data{"application/json": map[string]any{"a": []any{1.5, true}}}))
	f.Add(encoded(f, data{protocol.MIMECommValue: &protocol.CommValue{Address: protocol.GonbuiSyncAddress, Value: 1}}))
	f.Add(encoded(f, data{protocol.MIMEJupyterInput: &protocol.InputRequest{Prompt: "p"}}, data{protocol.MIMECommSubscribe: "x"}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var p page
		_ = readDisplays(bytes.NewReader(stream), &p)
		for _, output := range p.order {
			if !json.Valid([]byte(output)) {
				t.Errorf("shows %q", output)
			}
		}
	})
}
