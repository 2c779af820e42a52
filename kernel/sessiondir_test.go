package kernel

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSessionDir(t *testing.T) {
	dir := t.TempDir()
	for name, parents := range map[string][]string{"first": {dir, "/nowhere"}, "second": {"/nowhere", dir}, "made in the cache": {"/nowhere", filepath.Join(dir, "cache", sessionsFolder)}} {
		t.Run(name, func(t *testing.T) {
			got, reason, err := makeSessionDir(parents)
			if err != nil || !strings.HasPrefix(got, dir+"/") || (reason == nil) != (parents[0] == dir) {
				t.Errorf("%s, %v, %v", got, reason, err)
			}
		})
	}
	if _, _, err := makeSessionDir([]string{"/nowhere", "/proc"}); err == nil || !strings.Contains(err.Error(), "/nowhere") || !strings.Contains(err.Error(), "/proc") || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("error %v", err)
	}
}
