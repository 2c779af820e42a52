package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
)

// The library that tests/setup.sh installs.
var (
	oneDNNLibrary      = filepath.Join(".cache", "onednn-venv", "lib", "libdnnl.so.3")
	oneDNNRequirements = filepath.Join("tests", "onednn-requirements.txt")
)

// useOneDNN makes all programs of gonbatch compute with the oneDNN of the tests, unless
// GONBATCH_ONEDNN says otherwise. It returns a sentence for the headings of the results.
func useOneDNN() (string, error) {
	if value, ok := os.LookupEnv(rundir.EnvOneDNN); ok {
		return fmt.Sprintf("gonbatch with %s=%s.", rundir.EnvOneDNN, cmp.Or(value, "\"\"")), nil
	}
	path, err := filepath.Abs(oneDNNLibrary)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "gonbatch without oneDNN (install it with tests/setup.sh tests).", nil
	}
	text, err := os.ReadFile(oneDNNRequirements)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("gonbatch with oneDNN (%s).", strings.TrimSpace(string(text))), os.Setenv(rundir.EnvOneDNN, path)
}

// headed adds a sentence to a report, after its title.
func headed(markdown, sentence string) string {
	title, rest, _ := strings.Cut(markdown, "\n")
	return title + "\n\n" + sentence + "\n" + rest
}
