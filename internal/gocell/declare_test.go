package gocell

import "testing"

func TestAssumedName(t *testing.T) {
	tests := []struct{ path, want string }{
		{"fmt", "fmt"}, {"math/rand/v2", "rand"}, {"gopkg.in/yaml.v3", "yaml"}, {"go.yaml.in/yaml/v3", "yaml"},
		{"github.com/mattn/go-isatty", "isatty"}, {"example.com/my-lib", "my"}, {"v2", "v2"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			if got := AssumedName(tt.path); got != tt.want {
				t.Errorf("AssumedName = %q, want %q", got, tt.want)
			}
		})
	}
}
