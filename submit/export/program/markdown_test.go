package program

import (
	"strings"
	"testing"
)

func TestMarkdownComment(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"heading", "## The *net* ##\r\n\r\ntext\n", "// # The *net*\n//\n// text\n"},
		{"what could end the comment", "*/ }\n//go:build x\x00", "// */ }\n// //go:build x_\n"},
		{"what Go takes for a constraint", "a\n  +build linux", "// a\n// \\+build linux\n"},
		{"a picture", "![](data:" + strings.Repeat("é", 400) + ")", "// ![](data:" + strings.Repeat("é", 288) + "...\n"},
		{"tabs", "\tcode", "// code\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := markdownComment(tt.text); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
