package quota

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/procfs"

	"gonbatch/internal/quota/quotatest"
)

// TestLeast: the least quota on the path counts, in both versions of control groups, as they look
// on a host and in containers.
func TestLeast(t *testing.T) {
	const v1, v2 = "cgroup", "cgroup2"
	for _, test := range []struct {
		name, version, root, group string
		files                      map[string]string
		want                       int
		at                         string
	}{
		{"none", v2, "/", "/user.slice", map[string]string{"user.slice/cpu.max": "max 100000"}, 0, ""},
		{"no file", v2, "/", "/", nil, 0, ""},
		{"its own", v2, "/", "/job/step", map[string]string{"job/cpu.max": "max 100000", "job/step/cpu.max": "250000 100000"}, 2, "/job/step"},
		{"its parent's", v2, "/", "/job/step", map[string]string{"job/cpu.max": "300000 100000", "job/step/cpu.max": "800000 100000"}, 3, "/job"},
		{"the same as its parent's", v2, "/", "/job/step", map[string]string{"job/cpu.max": "200000 100000", "job/step/cpu.max": "200000 100000"}, 2, "/job"},
		{"a name with a backslash", v2, `/m-a\134x2db.scope`, `/m-a\x2db.scope/app`, map[string]string{"cpu.max": "200000 100000"}, 2, "."},
		{"less than one CPU", v2, "/", "/job", map[string]string{"job/cpu.max": "20000 100000"}, 1, "/job"},
		{"another period", v2, "/", "/job", map[string]string{"job/cpu.max": "40000 10000"}, 4, "/job"},
		{"a container's namespace", v2, "/", "/", map[string]string{"cpu.max": "150000 100000"}, 1, "/"},
		{"a container that sees the host's path", v2, "/docker/3f", "/docker/3f/app", map[string]string{"cpu.max": "500000 100000", "app/cpu.max": "max 100000"}, 5, "."},
		{"a path outside the namespace", v2, "/", "/../other", map[string]string{"cpu.max": "200000 100000"}, 0, ""},
		{"a path beside the mount", v2, "/docker/3f", "/docker/3f5", map[string]string{"cpu.max": "200000 100000"}, 0, ""},
		{"two dots in a name", v2, "/", "/job..1", map[string]string{"job..1/cpu.max": "200000 100000"}, 2, "job..1"},
		{"version 1, none", v1, "/", "/job", map[string]string{"job/cpu.cfs_quota_us": "-1", "job/cpu.cfs_period_us": "100000"}, 0, ""},
		{"version 1", v1, "/", "/job/step", map[string]string{"job/step/cpu.cfs_quota_us": "150000", "job/step/cpu.cfs_period_us": "50000"}, 3, "/job/step"},
		{"version 1, its parent's", v1, "/", "/job/step", map[string]string{
			"job/step/cpu.cfs_quota_us": "-1", "job/step/cpu.cfs_period_us": "100000", "job/cpu.cfs_quota_us": "190000", "job/cpu.cfs_period_us": "100000",
		}, 1, "/job"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), `a b\c`)
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text+"\n"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			group := procfs.Cgroup{Path: test.group}
			if test.version == v1 {
				group.HierarchyID, group.Controllers = 4, []string{"cpu", "cpuacct"}
			}
			mounts := []*procfs.MountInfo{
				{FSType: "tmpfs", Root: "/", MountPoint: "/nowhere"},
				{FSType: v1, Root: "/", MountPoint: "/nowhere", SuperOptions: map[string]string{"cpuset": ""}},
				{FSType: test.version, Root: test.root, MountPoint: strings.NewReplacer(" ", `\040`, `\`, `\134`).Replace(dir), SuperOptions: map[string]string{"rw": "", "cpu": "", "cpuacct": ""}},
			}
			got, err := least([]procfs.Cgroup{{HierarchyID: 7, Controllers: []string{"cpuset"}, Path: "/x"}, group}, mounts)
			want := Quota{CPUs: test.want}
			if test.want > 0 {
				want.Group = inode(filepath.Join(dir, test.at))
			}
			if err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
	}
}

// TestNonsense: a quota that can't be understood is an error that names the group.
func TestNonsense(t *testing.T) {
	for _, text := range []string{"a 100000", "100000 0", "100000 b"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cpu.max"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := least([]procfs.Cgroup{{Path: "/"}}, []*procfs.MountInfo{{FSType: "cgroup2", Root: "/", MountPoint: dir}})
		if err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// asChild makes this program print its quota.
const asChild = "QUOTA_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		q, err := Read()
		n, err2 := NumCPU()
		fmt.Println(q.CPUs, q.Group != 0, n, errors.Join(err, err2))
		return
	}
	os.Exit(m.Run())
}

// TestReal: the kernel's own groups are understood.
func TestReal(t *testing.T) {
	join := quotatest.Group(t, 2.6)
	cmd := exec.Command(join[0], append(join[1:], os.Args[0])...)
	cmd.Env = append(os.Environ(), asChild+"=1")
	out, err := cmd.CombinedOutput()
	if want := fmt.Sprintf("2 true %d <nil>\n", min(runtime.NumCPU(), 2)); err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}
