package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
)

// mostRoots is how many folders with runs submit remembers: the newest.
const mostRoots = 200

// rootsFile is the file that remembers the folders in which the user has submitted, a line for
// each.
func (rs *Runs) rootsFile() (string, error) { return userdir.State(rs.Getenv, "run-roots") }

// remembered returns the folders in which the user has submitted, the newest last.
func (rs *Runs) remembered() (roots []string, err error) {
	file, err := rs.rootsFile()
	if err != nil {
		return nil, err
	}
	data, err := rundir.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSuffix(line, "\n"); filepath.IsAbs(line) {
			roots = append(roots, line)
		}
	}
	return roots, err
}

// remember remembers a folder of runs, so that other commands find them from anywhere. If two
// commands do so at the same time, one of the folders may be forgotten until its next run.
func (rs *Runs) remember(root string) error {
	file, err := rs.rootsFile()
	if err != nil || strings.ContainsRune(root, '\n') {
		return nil //nolint:nilerr // There is no place for it.
	}
	roots, err := rs.remembered()
	if err != nil || slices.Contains(roots, root) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	roots = append(roots, root)
	if len(roots) > mostRoots {
		roots = slices.DeleteFunc(roots, isGone)
		roots = roots[max(0, len(roots)-mostRoots):]
	}
	return rundir.WriteFileAtomic(file, []byte(strings.Join(roots, "\n")+"\n"), 0o600)
}

func isGone(root string) bool {
	_, err := os.Stat(root)
	return errors.Is(err, fs.ErrNotExist)
}

// elsewhere returns the other folders in which the user has submitted; none if the user says in
// which to look.
func (rs *Runs) elsewhere() []string {
	root, err := filepath.Abs(rs.Root)
	if err != nil || rs.RootGiven {
		return nil
	}
	roots, _ := rs.remembered() // Then the runs are not in this folder, as the user is told.
	var seen []fs.FileInfo
	known := func(r string) bool { // A folder may have several names.
		info, err := os.Stat(r)
		if err != nil {
			return false
		}
		before := slices.ContainsFunc(seen, func(s fs.FileInfo) bool { return os.SameFile(s, info) })
		seen = append(seen, info)
		return before
	}
	known(root)
	return slices.DeleteFunc(roots, func(r string) bool { return r == root || known(r) })
}

// findElsewhere finds the run with a job id or a whole name in the folders in which the user has
// submitted before. err is the error of the search in the run root.
func (rs *Runs) findElsewhere(word string, err error) (rundir.Dir, error) {
	var found []rundir.Dir
	for _, root := range rs.elsewhere() {
		if d, ok := rundir.FindExact(root, word); ok {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return rundir.Dir{}, err
	case 1:
		fmt.Fprintf(rs.Err, "submit: run %s is in %s\n", found[0].Name(), found[0].Root())
		return found[0], nil
	}
	var paths []string
	for _, d := range found {
		paths = append(paths, d.Path())
	}
	return rundir.Dir{}, fmt.Errorf("%s names %d runs: give the directory of one, %s", word, len(found), strings.Join(paths, " or "))
}

// listElsewhere adds the run directories in the other folders in which the user has submitted, the
// newest last.
func (rs *Runs) listElsewhere(dirs []rundir.Dir) []rundir.Dir {
	for _, root := range rs.elsewhere() {
		more, err := rundir.List(root)
		if err != nil {
			rs.Warn("%v", err)
		}
		dirs = append(dirs, more...)
	}
	rundir.SortByTime(dirs)
	return dirs
}
