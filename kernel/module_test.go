package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModuleText(t *testing.T) {
	tests := []struct{ name, mod, want, err string }{
		{
			name: "requirements, replacements and a folder with a space",
			mod: `module gonbatch

go 1.26.5

require (
	github.com/gomlx/gomlx v0.28.2
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	example.com/near => ./near
	example.com/far v1.0.0 => example.com/fork v1.0.1
)

tool github.com/janpfeifer/gonb
`,
			want: `module session

go 1.26.5

require (
	gonbatch v0.0.0-00010101000000-000000000000
	github.com/gomlx/gomlx v0.28.2
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	gonbatch => "DIR"
	example.com/near => "DIR/near"
	example.com/far v1.0.0 => example.com/fork v1.0.1
)
`,
		},
		{name: "no go.mod", err: "set GONBATCH_SOURCE to gonbatch's source tree"},
		{name: "no module line", mod: "go 1.26\n", err: "no module line: set GONBATCH_SOURCE"},
		{name: "not a go.mod", mod: "module gonbatch\n!\n", err: "go.mod:2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "source tree")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if tt.mod != "" {
				if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(tt.mod), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := moduleText(dir)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.ReplaceAll(string(got), dir, "DIR"); got != tt.want {
				t.Errorf("go.mod:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}
