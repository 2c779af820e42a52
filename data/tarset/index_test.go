package tarset

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"gonbatch/data/files"
)

// TestBillion: an index of a billion samples needs no memory.
func TestBillion(t *testing.T) {
	const shards, each = 10_000, 100_000
	file, err := os.Create(filepath.Join(t.TempDir(), "index")) // It has holes, and takes no room on the disk.
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // removed with the folder
	counts := make([]byte, 0, 8*shards)
	for range shards {
		counts = binary.LittleEndian.AppendUint64(counts, each)
	}
	begin := int64(8 * (shards*each + shards))
	if _, err := file.WriteAt(counts, begin); err != nil {
		t.Fatal(err)
	}
	const last = 8 * (shards*each + shards - 2) // Of the last sample.
	if _, err := file.WriteAt(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 512), 2048), last); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x, err := readIndex(&files.Kept{ReaderAt: file, Size: begin + 8*shards}, shards)
	if err != nil {
		t.Fatal(err)
	}
	if shard, begin, end, err := x.find(shards*each - 1); shard != shards-1 || begin != 512 || end != 2048 || err != nil {
		t.Errorf("the last sample is in shard %d, from %d to %d: %v", shard, begin, end, err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; x.len() != 1_000_000_000 || used > 1<<20 {
		t.Errorf("an index of %d samples has allocated %d bytes", x.len(), used)
	}
}
