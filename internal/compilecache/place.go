package compilecache

import (
	"fmt"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
)

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
