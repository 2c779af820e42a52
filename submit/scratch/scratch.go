package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// These name the folders that this command makes among the temporary files, for the time of a
// command or a job. A kernel's folders begin with gonbatch- as well, and are the kernel's own.
const (
	recorderPattern  = "gonbatch-recorder-*"
	modulePattern    = "gonbatch-module-*"
	preflightPattern = "gonbatch-preflight-*"
)

// A folder is left alone while its owner may just be about to use it.
const (
	socketAge = time.Minute
	folderAge = 24 * time.Hour
)

// sweep removes what commands of this user that were killed have left among the temporary files:
// folders with a recorder's socket that nobody serves, and any that are a day old.
func sweep(temporary string, now time.Time) {
	var folders []string
	for _, pattern := range []string{recorderPattern, modulePattern, preflightPattern} {
		found, _ := filepath.Glob(filepath.Join(temporary, pattern)) // The patterns are good.
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || !mine(info) {
			continue
		}
		if left(folder, now.Sub(info.ModTime())) {
			_ = os.RemoveAll(folder) // What is left now is swept another time.
		}
	}
}

func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// left reports whether a folder of that age has nobody who uses it.
func left(folder string, age time.Duration) bool {
	socket := filepath.Join(folder, socketName)
	if _, err := os.Stat(socket); err != nil {
		return age > folderAge
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return age > socketAge && errors.Is(err, syscall.ECONNREFUSED)
}
