package tarset_test

import (
	"archive/tar"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
	"gonbatch/data/compressed/compressedtest"
	"gonbatch/data/lane/lanetest"
	"gonbatch/data/tarset"
)

// compressions are the formats of shards, by their extensions.
var compressions = map[string]func(t *testing.T, shard []byte) []byte{
	".tar":     func(_ *testing.T, shard []byte) []byte { return shard },
	".tar.gz":  zipped,
	".tgz":     zipped,
	".tar.zst": func(t *testing.T, shard []byte) []byte { return []byte(compressedtest.Zstd(t, string(shard))) },
}

// zipped compresses in two members.
func zipped(t *testing.T, shard []byte) []byte {
	t.Helper()
	return []byte(compressedtest.Gzip(t, string(shard[:len(shard)/3]), string(shard[len(shard)/3:])))
}

// stream writes shards, compressed, and opens them.
func stream(t *testing.T, c tarset.Config, extension string, shards ...[]byte) data.Stream {
	t.Helper()
	dir := t.TempDir()
	for i, shard := range shards {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d%s", i, extension)), compressions[extension](t, shard), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := tarset.Stream(filepath.Join(dir, "*"+extension), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read reads the rest of a part.
func read(s data.Stream, part, skip int) (all []*tarset.Sample, err error) {
	for example, err := range s.Read(part, 0, skip) {
		if err != nil {
			return all, err
		}
		all = append(all, example.(*tarset.Sample))
	}
	return all, nil
}

// unlikeModel says how a sample differs from what a test expects.
func unlikeModel(got *tarset.Sample, want sample) string {
	members := map[string]string{}
	for _, extension := range got.Extensions() {
		content, err := got.Bytes(extension)
		members[extension] = string(content)
		if err != nil {
			return err.Error()
		}
	}
	if got.Key != want.key || !maps.Equal(members, want.members) || !strings.HasPrefix(filepath.Base(got.Shard), fmt.Sprintf("%02d.", want.shard)) {
		return fmt.Sprintf("sample %q of %s with %d members, want %q of shard %d with %d", got.Key, got.Shard, len(members), want.key, want.shard, len(want.members))
	}
	return ""
}

// TestStreamAgainstModel: a stream has the samples of random shards, in order, however many are
// skipped, in every format.
func TestStreamAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		for extension := range compressions {
			random := rand.New(rand.NewPCG(seed, 2))
			var shards [][]byte
			var want [][]sample
			for shard := range 1 + random.IntN(4) {
				members, samples := randomShard(random, shard, random.IntN(8))
				shards, want = append(shards, pack(t, []tar.Format{tar.FormatPAX, tar.FormatGNU}[random.IntN(2)], members...)), append(want, samples)
			}
			s := stream(t, raw, extension, shards...)
			if s.Parts() != len(want) {
				t.Fatalf("%d parts of %d shards", s.Parts(), len(want))
			}
			for part, samples := range want {
				for skip := range len(samples) + 2 {
					got, err := read(s, part, skip)
					rest := samples[min(skip, len(samples)):]
					if err != nil || len(got) != len(rest) {
						t.Fatalf("seed %d, %s: %d samples of %d after %d: %v", seed, extension, len(got), len(samples), skip, err)
					}
					for i := range got {
						if text := unlikeModel(got[i], rest[i]); text != "" {
							t.Fatalf("seed %d, %s, skip %d: %s", seed, extension, skip, text)
						}
					}
				}
			}
		}
	}
}

// TestStreamInLanes: the lanes of two ranks have each sample of a pass once, and a lane that stops
// and resumes at any place has the samples, in order, of one that doesn't.
func TestStreamInLanes(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 3))
		extension := slices.Sorted(maps.Keys(compressions))[random.IntN(len(compressions))]
		var shards [][]byte
		var keys []string
		for shard := range 1 + random.IntN(6) {
			var members []member
			for i := range random.IntN(9) + 1 - min(shard, 1) {
				key := fmt.Sprintf("%d-%d", shard, i)
				members = append(members, member{name: key + ".bin", content: key}, member{name: key + ".txt", content: key})
				keys = append(keys, key)
			}
			shards = append(shards, pack(t, tar.FormatPAX, members...))
		}
		s := stream(t, raw, extension, shards...)
		lanetest.Divide(t, s, seed, keys, func(example any) string { return example.(*tarset.Sample).Key })
	}
}

// TestStreamBatch makes tensors of samples, and names one that can't be decoded.
func TestStreamBatch(t *testing.T) {
	config := tarset.Config{Name: "photos", Inputs: []tarset.Field{content}, Labels: []tarset.Field{tarset.Class()}}
	s := stream(t, config, ".tar.gz", pack(t, tar.FormatPAX,
		member{name: "a.bin", content: "xy"}, member{name: "a.cls", content: "3"},
		member{name: "b.bin", content: "zz"}, member{name: "b.cls", content: "4"},
		member{name: "c.bin", content: "zz"}, member{name: "c.cls", content: "dog"},
		member{name: "d.bin", content: "long"}, member{name: "d.cls", content: "5"}))
	samples, err := read(s, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	inputs, labels, err := s.Batch([]any{samples[1], samples[0]})
	if err != nil || string(tensors.MustCopyFlatData[uint8](inputs[0])) != "zzxy" || !slices.Equal(tensors.MustCopyFlatData[int32](labels[0]), []int32{4, 3}) {
		t.Errorf("got %v, %v, %v", inputs, labels, err)
	}
	for want, batch := range map[string][]any{
		`label 0: .cls: "dog" is not the number of a class`: {samples[0], samples[2]},
		`input 0 of sample "a" of`:                          {samples[0], samples[3]},
		"a batch of no examples":                            nil,
	} {
		if _, _, err := s.Batch(batch); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "tarset: photos: ") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, _, err := s.Batch([]any{samples[2]}); err == nil || !strings.Contains(err.Error(), `sample "c" of `+samples[2].Shard) {
		t.Errorf("got %v", err)
	}
	if s.Name() != "photos" || s.(data.NamedParts).PartName(0) != "00.tar.gz" {
		t.Errorf("%s with the part %s", s.Name(), s.(data.NamedParts).PartName(0))
	}
}

// TestTruncatedStream: a shard that is cut at any byte is an error that names the file and the last
// sample, after the samples before.
func TestTruncatedStream(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	members, samples := randomShard(random, 0, 5)
	for extension, compress := range compressions {
		whole := compress(t, pack(t, tar.FormatPAX, members...))
		end := len(whole) - 1
		if extension == ".tar" {
			end -= 1024 // Tar's mark of the end has two blocks, and one is enough.
		}
		for cut := end; cut >= 0; cut -= 1 + random.IntN(60) {
			path := filepath.Join(t.TempDir(), "00"+extension)
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := tarset.Stream(path, raw)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(s, 0, 0)
			if err == nil || !strings.Contains(err.Error(), path+": ") || len(got) >= len(samples) {
				t.Fatalf("%s: %d of %d bytes: %d samples, %v", extension, cut, len(whole), len(got), err)
			}
			if len(got) > 0 && !strings.Contains(err.Error(), fmt.Sprintf("at the sample %q: ", samples[len(got)].key)) && !strings.Contains(err.Error(), fmt.Sprintf("at the sample %q: ", samples[len(got)-1].key)) {
				t.Fatalf("%s: %d of %d bytes: after %d samples: %v", extension, cut, len(whole), len(got), err)
			}
			for i := range got {
				if text := unlikeModel(got[i], samples[i]); text != "" {
					t.Fatal(text)
				}
			}
		}
	}
}

func TestStreamRefuses(t *testing.T) {
	plain := pack(t, tar.FormatPAX, member{name: "a.bin", content: "x"})
	flipped := slices.Clone(zipped(t, plain))
	flipped[len(flipped)-6]++ // The checksum.
	for _, tt := range []struct {
		name, want string
		shard      []byte
	}{
		{"empty file", "it is empty", nil},
		{"text", "invalid tar header", []byte(strings.Repeat("text ", 500))},
		{"concatenated", `at the sample "a": there is something after tar's mark of the end`, slices.Concat(plain, plain)},
		{"members apart", `the sample "a" has begun earlier`, pack(t, tar.FormatGNU, member{name: "a.bin", content: "x"}, member{name: "b.bin", content: "y"}, member{name: "a.txt", content: "y"})},
		{"same name", `the sample "a" has two members .bin`, pack(t, tar.FormatPAX, member{name: "a.bin", content: "x"}, member{name: "a.bin", content: "y"})},
		{"no tar file in gzip", "the file is truncated", zipped(t, []byte("hello"))},
		{"a damaged checksum", "gzip: invalid checksum: copy the file again", flipped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := tarset.Stream(filepath.Join(write(t, tt.shard), "0.tar"), raw)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := read(s, 0, 0); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "0.tar: ") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := tarset.Stream(filepath.Join(write(t, plain), "0.tar"), tarset.Config{}); err == nil || !strings.Contains(err.Error(), "no inputs") {
		t.Errorf("without inputs: %v", err)
	}
	if _, err := tarset.Stream(filepath.Join(write(t, plain), "{0..1}.tar"), raw); err == nil || !strings.Contains(err.Error(), "1.tar: no such file") {
		t.Errorf("without a shard: %v", err)
	}
}

// TestSamplesBeforeError: all complete samples come before an error: one is complete when a member
// of another one follows it.
func TestSamplesBeforeError(t *testing.T) {
	for name, tt := range map[string]struct {
		want    []string
		members []member
	}{
		"members apart": {[]string{"a", "b"}, []member{{name: "a.bin"}, {name: "b.bin"}, {name: "a.txt"}, {name: "c.bin"}}},
		"same name":     {[]string{"a"}, []member{{name: "a.bin"}, {name: "b.bin"}, {name: "b.bin"}}},
	} {
		for skip := range len(tt.want) + 1 {
			got, err := read(stream(t, raw, ".tar", pack(t, tar.FormatPAX, tt.members...)), 0, skip)
			var keys []string
			for _, sample := range got {
				keys = append(keys, sample.Key)
			}
			if err == nil || !slices.Equal(keys, tt.want[skip:]) {
				t.Errorf("%s, after %d: the samples %q, and %v; want %q and an error", name, skip, keys, err, tt.want[skip:])
			}
		}
	}
}

// TestStreamCloses: a stream that is no longer read has no open files.
func TestStreamCloses(t *testing.T) {
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	s := stream(t, raw, ".tar.zst", pack(t, tar.FormatPAX, member{name: "a.bin", content: "x"}, member{name: "b.bin", content: "y"}))
	for range 50 {
		for _, err := range s.Read(0, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) > len(before)+20 {
		t.Errorf("%d files are open, %d before: %v", len(after), len(before), err)
	}
}
