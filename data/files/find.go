package files

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/plural"
)

// File is a file of a dataset, as it was when it was found.
type File struct {
	Path     string // Absolute.
	Size     int64
	Modified time.Time
}

// mostFiles limits the files that a pattern may name.
const mostFiles = 1 << 20

// Find returns the files that a pattern names, such as "train-{0000..0099}.tar", "{a,b}.csv" or
// "part-*.csv". Braces have a list, or a range of numbers, which are padded with zeros to the same
// width if one begins with a zero; the files come in their order. All files in braces must exist.
// Those that match *, ? or [] (see filepath.Match) are sorted by name. A file may be there only
// once.
func Find(pattern string) ([]File, error) {
	names, err := expand(pattern)
	if err != nil {
		return nil, fmt.Errorf("files %s: %w", pattern, err)
	}
	var all []File
	seen := map[string]bool{}
	for _, name := range names {
		paths, err := matches(name)
		if err != nil {
			return nil, fmt.Errorf("files %s: %w", pattern, err)
		}
		for _, path := range paths {
			file, err := stat(path)
			if err != nil {
				return nil, fmt.Errorf("files %s: %w", pattern, err)
			}
			if seen[file.Path] {
				return nil, fmt.Errorf("files %s: it names %s twice", pattern, path)
			}
			seen[file.Path] = true
			all = append(all, file)
		}
	}
	return all, nil
}

// Fingerprint hashes the names and sizes of files, and settings that change what is made from them;
// see data.Fingerprinted. It stays the same when files are copied to another folder.
func Fingerprint(list []File, settings string) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", settings)
	for _, f := range list {
		fmt.Fprintf(hash, "%q %d\n", filepath.Base(f.Path), f.Size)
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// patterns are the parts of a pattern that stand for other text.
var patterns = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|[*?]`)

// Name returns a name for the files that a pattern names: what their names have in common, such as
// "train" for train-{0000..0099}.tar, or that of their folder.
func Name(pattern string) string {
	base := patterns.ReplaceAllString(filepath.Base(pattern), "")
	if base = strings.Trim(strings.TrimSuffix(base, filepath.Ext(base)), "-_. "); base != "" {
		return base
	}
	if folder, err := filepath.Abs(filepath.Dir(pattern)); err == nil {
		return filepath.Base(folder)
	}
	return pattern
}

// matches returns a file, or the files that match it as a pattern.
func matches(name string) ([]string, error) {
	if _, err := os.Stat(name); err == nil || !strings.ContainsAny(name, `*?[\`) {
		return []string{name}, err
	}
	paths, err := filepath.Glob(name)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no file matches %s", name)
	}
	return paths, err
}

func stat(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is not a file", path)
	}
	path, err = filepath.Abs(path)
	return File{Path: path, Size: info.Size(), Modified: info.ModTime()}, err
}

// Open opens a file that has not changed since it was found.
func (f File) Open() (*os.File, error) {
	opened, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil && (info.Size() != f.Size || !info.ModTime().Equal(f.Modified)) {
		err = fmt.Errorf("%s has changed since the dataset was opened: start the program again", f.Path)
	}
	if err != nil {
		_ = opened.Close() // It was only read.
		return nil, err
	}
	return opened, nil
}

// expand expands the braces of a pattern.
func expand(pattern string) ([]string, error) {
	before, rest, found := strings.Cut(pattern, "{")
	if !found {
		return []string{pattern}, nil
	}
	inside, after, closed := strings.Cut(rest, "}")
	if !closed || strings.Contains(inside, "{") {
		return nil, fmt.Errorf("a { needs a }, and braces can't be in braces")
	}
	middles, err := alternatives(inside)
	if err != nil {
		return nil, err
	}
	ends, err := expand(after)
	if err != nil {
		return nil, err
	}
	if len(middles) > mostFiles/len(ends) {
		return nil, fmt.Errorf("its braces name more than %s", plural.Of(mostFiles, "file"))
	}
	all := make([]string, 0, len(middles)*len(ends))
	for _, middle := range middles {
		for _, end := range ends {
			all = append(all, before+middle+end)
		}
	}
	return all, nil
}

// alternatives are what braces stand for: a,b,c or 000..199.
func alternatives(inside string) ([]string, error) {
	low, high, isRange := strings.Cut(inside, "..")
	if !isRange {
		list := strings.Split(inside, ",")
		if len(list) < 2 {
			return nil, fmt.Errorf("{%s} is neither a list, such as {a,b}, nor a range, such as {000..199}", inside)
		}
		return list, nil
	}
	first, err := strconv.ParseUint(low, 10, 32)
	last, lastErr := strconv.ParseUint(high, 10, 32)
	if err != nil || lastErr != nil || first > last || last-first >= mostFiles {
		return nil, fmt.Errorf("{%s} is not a range of at most %d numbers, such as {000..199}", inside, mostFiles)
	}
	width := 0
	if low[0] == '0' && len(low) > 1 || high[0] == '0' && len(high) > 1 {
		width = max(len(low), len(high))
	}
	all := make([]string, 0, last-first+1)
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%0*d", width, n))
	}
	return all, nil
}
