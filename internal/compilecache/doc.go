// Package compilecache keeps compiled programs on disk, so that a program is compiled once and then
// loaded by every process that needs it: the next cell of a notebook, the other ranks, the job
// after a restart.
//
// It knows nothing about XLA. A program is a byte slice, stored under a Key, which is the hash of
// everything that determines it. Package distributed/pjrt makes the keys, compiles and loads.
//
//	cache, err := compilecache.Open(dir, compilecache.Limit)
//	key := compilecache.NewHash().Add("program", program).Add("CPU", cpu).Key()
//	err = cache.Do(key, "train_step", load, compile)
//
// # The folder
//
// The folder belongs to one user, and nobody else may write to it, because loaded programs are
// executed. It may be on NFS, and any number of processes on any number of machines may use it
// concurrently. An entry is written to a temporary file and renamed, and its header has a checksum,
// so a reader sees a whole entry or skips it. If several processes want the same program, one
// compiles it under a lock. The others wait, unless it stops responding.
//
// The cache never makes a program fail. If an entry can't be read, written or loaded, the program
// is compiled as if there were no cache.
package compilecache
