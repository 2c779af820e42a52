package tarset_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/compressed/compressedtest"
	"gonbatch/data/tarset"
)

// member is a file in a tar file.
type member struct {
	name, content string
	kind          byte // 0: a file.
}

// pack returns a tar file.
func pack(t *testing.T, format tar.Format, members ...member) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, m := range members {
		head := &tar.Header{Name: m.name, Size: int64(len(m.content)), Typeflag: tar.TypeReg, Mode: 0o644, Format: format}
		switch m.kind {
		case tar.TypeXGlobalHeader:
			head = &tar.Header{Typeflag: m.kind, PAXRecords: map[string]string{"comment": m.content}}
			m.content = ""
		case 0:
		default:
			head.Typeflag, head.Size, m.content = m.kind, 0, ""
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// write writes shards into a new folder, as 0.tar and so on.
func write(t *testing.T, shards ...[]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, shard := range shards {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.tar", i)), shard, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// content is a field that has the bytes of a member.
func content(s *tarset.Sample) (*tensors.Tensor, error) {
	value, err := s.Bytes("bin")
	return tensors.FromFlatDataAndDimensions(value, len(value)), err
}

var raw = tarset.Config{Inputs: []tarset.Field{content}}

// sample is what a test expects.
type sample struct {
	shard   int
	key     string
	members map[string]string
}

// randomShard returns the members of a shard, and its samples.
func randomShard(random *rand.Rand, shard, n int) (members []member, samples []sample) {
	clutter := []member{
		{name: "folder/", kind: tar.TypeDir}, {name: "README", content: "no extension"}, {name: ".hidden.txt", content: "no key"},
		{name: "__info.json__", content: "{}"}, {name: "link", kind: tar.TypeSymlink}, {content: strings.Repeat("x", random.IntN(1500)+1), kind: tar.TypeXGlobalHeader},
	}
	for i := range n {
		s := sample{shard, fmt.Sprintf("%d", i), map[string]string{}}
		switch random.IntN(4) {
		case 0:
			s.key = fmt.Sprintf("./a.b/%d", i)
		case 1:
			s.key = strings.Repeat("long/", random.IntN(60)) + s.key
		case 2:
			s.key = fmt.Sprintf("été/%d", i)
		}
		for _, extension := range []string{"bin", "Seg.PNG", ""}[:1+random.IntN(3)] {
			if random.IntN(5) == 0 {
				members = append(members, clutter[random.IntN(len(clutter))])
			}
			value := make([]byte, []int{0, 1, 511, 512, 513, random.IntN(5000)}[random.IntN(6)])
			for i := range value {
				value[i] = byte(random.Uint32())
			}
			members = append(members, member{name: s.key + "." + extension, content: string(value)})
			s.members[strings.ToLower(extension)] = string(value)
		}
		samples = append(samples, s)
	}
	return members, samples
}

// TestAgainstModel reads random samples of random shards, several at once.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		var shards [][]byte
		var want []sample
		for shard := range 1 + random.IntN(9) {
			members, samples := randomShard(random, shard, random.IntN(12))
			shards, want = append(shards, pack(t, []tar.Format{tar.FormatPAX, tar.FormatGNU}[random.IntN(2)], members...)), append(want, samples...)
		}
		if len(want) == 0 {
			continue
		}
		dir := write(t, shards...)
		config := raw
		if seed%2 == 0 {
			config.Dir = filepath.Join(dir, "index") // Otherwise in memory.
		}
		for range 2 { // The second time, the index is there.
			set, err := tarset.Open(filepath.Join(dir, "*.tar"), config)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if set.Len() != len(want) {
				t.Fatalf("seed %d: %d samples, want %d", seed, set.Len(), len(want))
			}
			compare(t, set, want)
		}
	}
}

func compare(t *testing.T, set *tarset.Set, want []sample) {
	t.Helper()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, i := range rand.Perm(len(want)) {
				got, err := set.Sample(i)
				if err != nil {
					t.Error(err)
					return
				}
				members := map[string]string{}
				for _, extension := range got.Extensions() {
					value, err := got.Bytes("none", extension)
					if err != nil {
						t.Error(err)
					}
					members[extension] = string(value)
				}
				if got.Key != want[i].key || filepath.Base(got.Shard) != fmt.Sprintf("%d.tar", want[i].shard) || !maps.Equal(members, want[i].members) {
					t.Errorf("sample %d is %s of %s, with %q, want %s of shard %d", i, got.Key, got.Shard, got.Extensions(), want[i].key, want[i].shard)
				}
			}
		})
	}
	group.Wait()
}

// TestTruncated: no shard that lacks its end is read, wherever it was cut.
func TestTruncated(t *testing.T) {
	members, _ := randomShard(rand.New(rand.NewPCG(1, 2)), 0, 6)
	for _, format := range []tar.Format{tar.FormatPAX, tar.FormatGNU} {
		whole := pack(t, format, members...)
		for cut := len(whole) - 1025; cut >= 0; cut -= 1 + cut%97 {
			_, err := tarset.Open(filepath.Join(write(t, whole[:cut]), "0.tar"), raw)
			if err == nil || !strings.Contains(err.Error(), "0.tar: ") {
				t.Fatalf("%d of %d bytes: %v", cut, len(whole), err)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	plain := pack(t, tar.FormatPAX, member{name: "a.bin", content: "x"})
	sparse := slices.Clone(plain)
	sparse[156] = tar.TypeGNUSparse
	checksum(sparse)
	huge := slices.Clone(plain)
	copy(huge[124:], "77777777777\x00")
	checksum(huge)
	broken := slices.Clone(plain)
	broken[0] = 'b'
	tests := []struct {
		name, want string
		shard      []byte
	}{
		{"empty file", "it is empty", nil},
		{"no samples", "no samples in 1 shard", pack(t, tar.FormatPAX, member{name: "README", content: "x"})},
		{"an empty tar file", "no samples in 1 shard", pack(t, tar.FormatPAX)},
		{"gzip", "read it with tarset.Stream, or unpack it with gunzip", []byte(compressedtest.Gzip(t, "tar"))},
		{"zstd", "read it with tarset.Stream, or unpack it with zstd -d", []byte(compressedtest.Zstd(t, "tar"))},
		{"text", "0.tar: byte 0: ", []byte(strings.Repeat("text ", 500))},
		{"broken header", "byte 0: archive/tar: invalid tar header", broken},
		{"sparse", "0.tar: byte 0: ", sparse},
		{"larger than the file", "0.tar: byte 0: the file is truncated", huge},
		{"concatenated", "byte 1024: there is something after", slices.Concat(plain, plain)},
		{"same name", `byte 1024: the sample "a" has two members .bin`, pack(t, tar.FormatPAX, member{name: "a.bin", content: "x"}, member{name: "a.bin", content: "y"})},
		{"members apart", `byte 2048: the sample "a" has begun earlier`, pack(t, tar.FormatGNU, member{name: "a.bin", content: "x"}, member{name: "b.bin", content: "y"}, member{name: "a.txt", content: "y"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tarset.Open(filepath.Join(write(t, tt.shard), "0.tar"), raw)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := tarset.Open(filepath.Join(write(t, plain), "0.tar"), tarset.Config{}); err == nil || !strings.Contains(err.Error(), "no inputs") {
		t.Errorf("without inputs: %v", err)
	}
	if _, err := tarset.Open(filepath.Join(write(t, plain), "{0..1}.tar"), raw); err == nil || !strings.Contains(err.Error(), "1.tar: no such file") {
		t.Errorf("without a shard: %v", err)
	}
}

// checksum corrects the checksum of a header.
func checksum(head []byte) {
	copy(head[148:156], "        ")
	sum := 0
	for _, b := range head[:512] {
		sum += int(b)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// TestFingerprint: it changes with the shards, but not with their folder.
func TestFingerprint(t *testing.T) {
	open := func(c tarset.Config, content string) string {
		dir := write(t, pack(t, tar.FormatPAX, member{name: "a.bin", content: content}))
		set, err := tarset.Open(filepath.Join(dir, "*.tar"), c)
		if err != nil {
			t.Fatal(err)
		}
		return set.Fingerprint()
	}
	first := open(raw, "x")
	if again := open(raw, "x"); first == "" || again != first {
		t.Errorf("%q, in another folder %q", first, again)
	}
	if open(raw, strings.Repeat("x", 600)) == first || open(tarset.Config{Inputs: raw.Inputs, Labels: raw.Inputs}, "x") == first {
		t.Error("other shards, or other fields, have the same")
	}
}

// TestChangedShard: a shard that changes while it is read is an error, not other data.
func TestChangedShard(t *testing.T) {
	shard := pack(t, tar.FormatPAX, member{name: "a.bin", content: "x"}, member{name: "b.bin", content: "y"})
	dir := write(t, shard, shard)
	path := filepath.Join(dir, "1.tar")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tarset.Open(filepath.Join(dir, "{0,1}.tar"), raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, info.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := set.Batch([]int{0, 2}); err == nil || !strings.Contains(err.Error(), "1.tar has changed") {
			t.Errorf("got %v", err)
		}
	}
	shard[0] = 'c'
	if err := errors.Join(os.WriteFile(path, shard, 0o600), os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Batch([]int{0, 2}); err == nil || !strings.Contains(err.Error(), "the sample at byte 0 of "+path) {
		t.Errorf("got %v", err)
	}
	if x, _, err := set.Batch([]int{3, 0}); err != nil || string(tensors.MustCopyFlatData[uint8](x[0])) != "yx" {
		t.Errorf("other samples: %v, %v", x, err)
	}
}

// TestManyShards reads from more shards than stay open.
func TestManyShards(t *testing.T) {
	const n = 600
	var shards [][]byte
	for i := range n {
		shards = append(shards, pack(t, tar.FormatPAX, member{name: "a.bin", content: fmt.Sprintf("%03d", i)}))
	}
	set, err := tarset.Open(filepath.Join(write(t, shards...), "{0..599}.tar"), raw)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 20 {
				indices := rand.Perm(n)[:50]
				x, _, err := set.Batch(indices)
				if err != nil {
					t.Error(err)
					return
				}
				bytes := tensors.MustCopyFlatData[uint8](x[0])
				for row, index := range indices {
					if string(bytes[3*row:][:3]) != fmt.Sprintf("%03d", index) {
						t.Errorf("batch %d: sample %d is %s", i, index, bytes[3*row:][:3])
					}
				}
			}
		})
	}
	group.Wait()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil && len(open) > 350 {
		t.Errorf("%d files are open", len(open))
	}
}
