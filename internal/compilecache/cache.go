package compilecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
)

// Limit is the default size limit of a cache, in bytes.
const Limit = 2 << 30

// Cache is a folder of compiled programs.
type Cache struct {
	dir   string
	limit int64
	warn  func(error)

	warned sync.Once
	mu     sync.Mutex
	// unswept is how many bytes this process has written since it last checked the cache's size.
	unswept int64
}

// Open opens the cache in a folder, and creates the folder. The cache is limited to about limit
// bytes. The first problem in later use goes to warn.
func Open(dir string, limit int64, warn func(error)) (*Cache, error) {
	c := &Cache{dir: dir, limit: limit, warn: warn}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = checkFolder(dir)
	}
	if err != nil {
		return nil, c.trouble("used", err)
	}
	return c, nil
}

// checkFolder refuses a folder into which others could put programs.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("it isn't a folder")
	case !ownedAlone(info):
		return errors.New("others could put programs into it: restrict it to yourself (chmod 700)")
	}
	return nil
}

// trouble returns an error that says why the cache can't be used.
func (c *Cache) trouble(done string, err error) error {
	return fmt.Errorf("the compile cache %s can't be %s, so programs are compiled each time: %w. %s names another folder, or turns it %s", c.dir, done, err, rundir.EnvCompileCache, Off)
}

// FromEnvironment opens the cache in its place, or returns nil if it is turned off.
func FromEnvironment(getenv func(string) string, warn func(error)) (*Cache, error) {
	dir, err := place(getenv)
	if err != nil || dir == "" {
		return nil, err
	}
	return Open(dir, Limit, warn)
}

// Dir returns the cache's folder.
func (c *Cache) Dir() string { return c.dir }

// Do loads the program for a key, or compiles and stores it. If several processes want the same
// program, one compiles it while the others wait. Do doesn't load the result of compile, and
// doesn't store nil. If load refuses an entry, the program is compiled again. The name is for
// people.
//
// Do fails only if compile does.
func (c *Cache) Do(key Key, name string, load func([]byte) error, compile func() ([]byte, error)) error {
	if c.load(key, load) {
		return nil
	}
	unlock := c.lock(key)
	defer unlock()
	if c.load(key, load) { // Another process may have compiled it by now.
		return nil
	}
	program, err := compile()
	if err != nil || program == nil {
		return err
	}
	if err := c.write(key, name, program); err != nil {
		c.warned.Do(func() { c.warn(c.trouble("written", err)) })
		return nil
	}
	c.use(key)
	c.grown(int64(len(program)))
	return nil
}

// load loads the program for a key, and reports whether that succeeded. It removes an entry that
// can't be loaded.
func (c *Cache) load(key Key, load func([]byte) error) bool {
	program, err := c.read(key)
	switch {
	case err == nil && load(program) == nil:
		c.use(key)
		return true
	case err == nil, errors.Is(err, errForeign):
		_ = os.Remove(c.path(key)) // If that is impossible, the entry will be skipped again.
	}
	return false
}

// use records that a program was used, so that it is kept longer than others.
func (c *Cache) use(key Key) {
	now := time.Now()
	_ = os.Chtimes(c.path(key), now, now) // In a read-only folder, nothing is evicted either.
}

// Off is the value of the variable that turns the cache off.
const Off = "off"

// place returns the folder of the cache: the one from the environment, or one in the user's cache.
// It returns "" if the cache is turned off. Place creates nothing.
func place(getenv func(string) string) (dir string, err error) {
	switch dir := getenv(rundir.EnvCompileCache); {
	case dir == Off:
		return "", nil
	case dir == "":
		return userdir.Cache(getenv, "compile-cache")
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("%s=%q: give the absolute path of a folder, or %s", rundir.EnvCompileCache, dir, Off)
	default:
		return filepath.Clean(dir), nil
	}
}
