package config

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// distrust returns why a file's options must not be used: they name commands that would run as this
// user. It returns "" if only this user or root can have written the file.
func distrust(info fs.FileInfo, self int) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "its owner cannot be found out"
	}
	mode := info.Mode()
	switch owner := int(stat.Uid); {
	case owner != self && owner != 0:
		return fmt.Sprintf("it belongs to user %d, and only your own or root's counts", owner)
	case mode.Type() == fs.ModeSymlink:
		return ""
	case mode.Perm()&0o002 != 0:
		return "anybody may write it; chmod o-w it"
	case mode.Perm()&0o020 != 0 && stat.Gid != stat.Uid && stat.Gid != 0:
		return fmt.Sprintf("group %d may write it; chmod g-w it", stat.Gid) // A group with the owner's number has no other members.
	}
	return ""
}

// readTrusted reads a configuration file, or returns why it must not be used. A missing file gives
// fs.ErrNotExist.
func readTrusted(path string, self int) (data []byte, why string, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, "", err
	}
	if why := distrust(info, self); why != "" {
		return nil, why, nil
	}
	if info, err = os.Stat(path); err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "it is no regular file", nil // Opening a pipe would wait for a writer.
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // only read
	// Check the opened file: the path may name another one by now.
	if info, err = f.Stat(); err != nil {
		return nil, "", err
	}
	if why := distrust(info, self); why != "" {
		return nil, why, nil
	}
	data, err = io.ReadAll(f)
	return data, "", err
}
