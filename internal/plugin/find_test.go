package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// home returns a user's home with files in it; "%" in a variable's value stands for its path.
func home(t *testing.T, env map[string]string, files ...string) (dir string, getenv func(string) string) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("library"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func(key string) string {
		if key == "HOME" {
			return dir
		}
		return strings.ReplaceAll(env[key], "%", dir)
	}
}

const (
	cached  = ".cache/gonbatch/plugins/cpu-0.114.0/pjrt_c_api_cpu_plugin.so"
	byWheel = ".cache/gonbatch/plugins/cpu-wheel-0.0.1/pjrt_c_api_cpu_plugin.so"
	goxla   = ".local/lib/go-xla/pjrt_c_api_cpu_plugin.so"
)

func TestFind(t *testing.T) {
	tests := []struct {
		name        string
		platform    string
		env         map[string]string
		files       []string
		want        string
		wantVersion string
		wantErr     []string
	}{
		{
			name:  "own variable first",
			env:   map[string]string{rundir.EnvPluginDir: "%/mine", rundir.EnvXLAPath: "%/theirs"},
			files: []string{"mine/pjrt_c_api_cpu_plugin.so", "theirs/pjrt_c_api_cpu_plugin.so", cached, goxla},
			want:  "mine/pjrt_c_api_cpu_plugin.so",
		}, {
			name:    "own variable must have it",
			env:     map[string]string{rundir.EnvPluginDir: "%/mine", rundir.EnvXLAPath: "%/theirs"},
			files:   []string{"theirs/pjrt_c_api_cpu_plugin.so", cached},
			wantErr: []string{"no pjrt_c_api_cpu_plugin.so here", "/mine (GONBATCH_PLUGIN_DIR)", "fix: set GONBATCH_PLUGIN_DIR"},
		}, {
			name:  "go-xla's list, second folder of it",
			env:   map[string]string{rundir.EnvXLAPath: "%/none::%/theirs"},
			files: []string{"theirs/pjrt_c_api_cpu_plugin.so", cached},
			want:  "theirs/pjrt_c_api_cpu_plugin.so",
		}, {
			name:  "cache, when go-xla's list has none",
			env:   map[string]string{rundir.EnvXLAPath: "%/none"},
			files: []string{byWheel, cached, goxla},
			want:  cached,
		}, {
			name:  "cache elsewhere",
			env:   map[string]string{"XDG_CACHE_HOME": "%/big"},
			files: []string{"big/gonbatch/plugins/cpu-wheel-0.0.1/pjrt_c_api_cpu_plugin.so", goxla},
			want:  "big/gonbatch/plugins/cpu-wheel-0.0.1/pjrt_c_api_cpu_plugin.so",
		}, {
			name:  "the wheel's",
			files: []string{byWheel, goxla},
			want:  byWheel,
		}, {
			name:  "go-xla's folder",
			files: []string{goxla, ".local/lib/go-xla/pjrt_c_api_cpu_v0.114.0_plugin.so"},
			want:  goxla,
		}, {
			name:        "go-xla's folder, only versions",
			files:       []string{".local/lib/go-xla/pjrt_c_api_cpu_v0.114.0_plugin.so", ".local/lib/go-xla/pjrt_c_api_cpu_v0.83.1_plugin.so"},
			want:        ".local/lib/go-xla/pjrt_c_api_cpu_v0.114.0_plugin.so",
			wantVersion: "0.114.0",
		}, {
			name:     "cuda",
			platform: plugin.CUDA,
			files:    []string{goxla, ".local/lib/go-xla/nvidia/pjrt_c_api_cuda_plugin.so"},
			want:     ".local/lib/go-xla/nvidia/pjrt_c_api_cuda_plugin.so",
		}, {
			name:     "cuda, installed by us",
			platform: plugin.CUDA,
			files:    []string{".cache/gonbatch/plugins/cuda-0.12.0.1/go-xla/nvidia/pjrt_c_api_cuda_plugin.so"},
			want:     ".cache/gonbatch/plugins/cuda-0.12.0.1/go-xla/nvidia/pjrt_c_api_cuda_plugin.so",
		}, {
			name:     "nowhere",
			platform: plugin.CUDA,
			env:      map[string]string{rundir.EnvXLAPath: "%/theirs"},
			files:    []string{goxla, "theirs/pjrt_c_api_cpu_plugin.so"},
			wantErr: []string{"no pjrt_c_api_cuda_plugin.so here", "/theirs (PJRT_PLUGIN_LIBRARY_PATH)", "/.cache/gonbatch/plugins/cuda-",
				"/.local/lib/go-xla/nvidia", "/usr/local/lib/go-xla/nvidia", "fix: put it into one of these"},
		}, {
			name:     "unknown platform",
			platform: "tpu",
			wantErr:  []string{`unknown platform "tpu"; use "cpu" or "cuda"`},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir, getenv := home(t, tc.env, tc.files...)
			p, err := plugin.Find(plugin.Options{Platform: tc.platform, Getenv: getenv})
			if tc.wantErr != nil {
				checkError(t, err, tc.wantErr...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, tc.want); p.Path != want || p.Version != tc.wantVersion {
				t.Errorf("found %s (version %q), want %s (%q)", p.Path, p.Version, want, tc.wantVersion)
			}
		})
	}
}

func TestFindMakesPathsAbsolute(t *testing.T) {
	dir, _ := home(t, nil, "mine/pjrt_c_api_cpu_plugin.so")
	t.Chdir(dir)
	p, err := plugin.Find(plugin.Options{Getenv: func(key string) string {
		return map[string]string{rundir.EnvPluginDir: "mine"}[key]
	}})
	if want := filepath.Join(dir, "mine/pjrt_c_api_cpu_plugin.so"); err != nil || p.Path != want {
		t.Errorf("found %s, %v, want %s", p.Path, err, want)
	}
}

func TestFindPassesOverADanglingLink(t *testing.T) {
	dir, getenv := home(t, nil, goxla)
	link := filepath.Join(dir, byWheel)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "gone"), link); err != nil {
		t.Fatal(err)
	}
	p, err := plugin.Find(plugin.Options{Getenv: getenv})
	if err != nil || p.Path != filepath.Join(dir, goxla) {
		t.Errorf("found %v, %v", p, err)
	}
}

func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error lacks %q:\n%v", p, err)
		}
	}
}
