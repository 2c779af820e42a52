// Package compilecache keeps compiled programs on disk, so that a program is compiled once and then
// loaded by every process that needs it: the next cell of a notebook, the other ranks, the job
// after a restart.
//
// It knows nothing of XLA. A program is bytes, under a Key that is the hash of everything that
// decides about them. Package distributed/pjrt makes the keys, compiles and loads.
//
//	cache, err := compilecache.Open(dir, compilecache.Limit)
//	key := compilecache.NewHash().Add("program", program).Add("CPU", cpu).Key()
//	err = cache.Do(key, "train_step", load, compile)
//
// # The folder
//
// It belongs to one user, and nobody else may write to it: a program that is loaded is run. It may
// lie on NFS, and any number of processes on any number of machines may use it at once. An entry is
// written to a temporary file and renamed, and its header has a checksum, so a reader sees a whole
// entry or passes it over. Of processes that want the same program at once, one compiles it, under
// a lock; the others wait, but not for one that gives no sign of life.
//
// The cache never fails a program. Where an entry can't be read, written or loaded, the program is
// compiled as if there were no cache.
package compilecache
