package tarset

import (
	"fmt"
	"hash/maphash"
)

// keys follows the members of a shard, in order, and refuses those that are in no order.
type keys struct {
	key   string
	names map[string]bool // Extensions of the sample; nil before the first one.
	seed  maphash.Seed
	seen  map[uint64]bool // Hashes of keys.
}

func newKeys() *keys { return &keys{seed: maphash.MakeSeed(), seen: map[uint64]bool{}} }

// add adds a member, and reports whether a sample begins with it.
func (k *keys) add(key, extension string) (begins bool, err error) {
	if begins = key != k.key || k.names == nil; begins {
		hash := maphash.String(k.seed, key)
		if k.seen[hash] {
			return false, fmt.Errorf("the sample %q has begun earlier in the file: the members of a sample must be next to each other: make the tar file with --sort=name", key)
		}
		k.seen[hash] = true
		k.key, k.names = key, map[string]bool{}
	}
	if k.names[extension] {
		return false, fmt.Errorf("the sample %q has two members .%s", key, extension)
	}
	k.names[extension] = true
	return begins, nil
}
