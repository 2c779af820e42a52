package display

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

// TestCharts shows values of the real plotting libraries, which are in a separate module: gonbatch
// needs none of them.
func TestCharts(t *testing.T) {
	dir := t.TempDir() // the go command may have something to add to the module's files
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("testdata", "charts", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "run", "-modfile="+filepath.Join(dir, "go.mod"), ".")
	cmd.Dir = "testdata/charts"
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var bundles map[string]map[string]any
	if err := json.Unmarshal(out, &bundles); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, mime, has string }{
		{"chart", HTML, "go-echarts"},
		{"chart", Text, "*charts.Bar"},
		{"page", HTML, "series"},
		{"figure", HTML, "Plotly.newPlot"},
		{"figure", Text, "*grob.Fig"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.mime, func(t *testing.T) {
			if text, ok := bundles[tt.name][tt.mime].(string); !ok || !strings.Contains(text, tt.has) {
				t.Errorf("%.300v lacks %q", bundles[tt.name][tt.mime], tt.has)
			}
		})
	}
	figure, ok := bundles["figure"][Plotly].(map[string]any)
	if !ok || figure["layout"] == nil {
		t.Fatalf("figure: %v", bundles["figure"][Plotly])
	}
	if data, ok := figure["data"].([]any); !ok || len(data) != 1 || data[0].(map[string]any)["type"] != "bar" {
		t.Errorf("data: %v", figure["data"])
	}
}
