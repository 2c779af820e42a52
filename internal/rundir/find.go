package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// List returns this user's run directories in root, oldest first. A root that does not exist has
// none. What others have put there may claim to be any run, so it has no name here.
func List(root string) ([]Dir, error) {
	own, _, err := ListAll(root)
	return own, err
}

// ListAll is List, and returns the run directories of other users too.
func ListAll(root string) (own, others []Dir, err error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, nil, fmt.Errorf("run root %q: %w", root, err)
	}
	entries, err := os.ReadDir(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("run root %s: %w", abs, err)
	}
	for _, e := range entries {
		d := At(filepath.Join(abs, e.Name()))
		if hiddenName(e.Name()) {
			continue
		}
		_, err := os.Stat(d.ManifestPath())
		switch {
		case d.CheckOwner() != nil:
			if err == nil || errors.Is(err, fs.ErrPermission) && uniqueEnd.MatchString(e.Name()) {
				others = append(others, d)
			}
		case err == nil:
			own = append(own, d)
		}
	}
	SortByTime(own)
	return own, others, nil
}

// SortByTime sorts run directories by the time in their names, the newest last.
func SortByTime(dirs []Dir) {
	slices.SortFunc(dirs, func(a, b Dir) int {
		return cmp.Or(cmp.Compare(stamp(a.Name()), stamp(b.Name())), cmp.Compare(a.Name(), b.Name()))
	})
}

// JobName returns the part of the run's name that comes from the job's.
func (d Dir) JobName() string { return strings.TrimSuffix(d.Name(), "-"+stamp(d.Name())) }

// stamp returns the part of a run's name that sorts by time: everything after the slug.
func stamp(name string) string {
	parts := strings.Split(name, "-")
	return strings.Join(parts[max(0, len(parts)-3):], "-")
}

// Find returns the run that want identifies: a job id, a run's name or the start of one, or a path.
// If several runs match, as for a notebook's name, the error lists them. A number is only a job id:
// it must not mean another run because that job's is not there any more. A run of another user has
// only its path.
func Find(root, want string) (Dir, error) { return find(root, want, false) }

// FindWhole is Find for commands that change a run: of a name, the start is not enough, unless it
// is the whole name of a job with one run.
func FindWhole(root, want string) (Dir, error) { return find(root, want, true) }

func find(root, want string, whole bool) (Dir, error) {
	if strings.ContainsRune(want, filepath.Separator) {
		return openDir(want)
	}
	runs, others, err := ListAll(root)
	if err != nil {
		return Dir{}, err
	}
	if d, ok := findExact(runs, want); ok {
		return d, nil
	}
	var prefixed []Dir
	for _, d := range runs {
		// The name that a job was given is not quite that of its run: "sweep-0.5".
		if want != "" && (strings.HasPrefix(d.Name(), want) || strings.HasPrefix(d.Name(), Slug(want)+"-")) {
			prefixed = append(prefixed, d)
		}
	}
	var named []Dir
	for _, d := range prefixed {
		if d.JobName() == Slug(want) {
			named = append(named, d)
		}
	}
	if len(named) > 0 { // Others' names only begin like that.
		prefixed = named
	}
	if len(prefixed) == 1 && whole && prefixed[0].JobName() != Slug(want) {
		return Dir{}, fmt.Errorf("no run in %s is called %q: give the whole name, %s", root, want, prefixed[0].Name())
	}
	if _, err := strconv.ParseUint(want, 10, 64); err == nil && len(prefixed) > 0 {
		return Dir{}, fmt.Errorf("no run in %s has the job id %s: if you mean one of %s, give more of its name", root, want, names(prefixed))
	}
	switch len(prefixed) {
	case 1:
		return prefixed[0], nil
	case 0:
		for _, d := range others {
			if want != "" && strings.HasPrefix(d.Name(), want) {
				return Dir{}, fmt.Errorf("%w; to look at it, give its directory: %s", d.CheckOwner(), d.Path())
			}
		}
		return Dir{}, fmt.Errorf("no run %q in %s: give a job id or a run's name (`submit status` lists them), or name its folder with --run-root", want, root)
	}
	return Dir{}, fmt.Errorf("%q names %d runs in %s: give one of %s", want, len(prefixed), root, names(prefixed))
}

// findExact finds the run with that name; or else the newest with that job id, because clusters
// reuse ids; or else the newest that has, or had, this job too.
func findExact(runs []Dir, want string) (Dir, bool) {
	for _, d := range runs {
		if d.Name() == want {
			return d, true
		}
	}
	var earlier Dir
	for _, d := range slices.Backward(runs) {
		m, err := ReadManifest(d)
		if err != nil || want == "" {
			continue
		}
		if _, err := m.Adopt(d); err == nil && m.JobID == want {
			return d, true
		}
		if known, err := KnownJobs(d); err == nil && earlier == (Dir{}) && slices.Contains(known, want) {
			earlier = d
		}
	}
	return earlier, earlier != Dir{}
}

// FindExact finds the run directory in root with a name or a job id. There is none if root can't be
// read.
func FindExact(root, want string) (Dir, bool) {
	runs, _, err := ListAll(root)
	if err != nil {
		return Dir{}, false
	}
	return findExact(runs, want)
}

func names(runs []Dir) string {
	list := make([]string, len(runs))
	for i, d := range runs {
		list[i] = d.Name()
	}
	return strings.Join(list, ", ")
}
