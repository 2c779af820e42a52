package logger

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// noon is the time of every record in a test.
func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func TestJSONLinesContinues(t *testing.T) {
	const line1 = `{"loss":0.5,"step":1,"time":"2026-01-02T12:00:00Z"}` + "\n"
	const line2 = `{"acc":"NaN","loss":"+Inf","step":2,"time":"2026-01-02T12:00:00Z"}` + "\n"
	tests := []struct{ name, before, want string }{
		{name: "no file", want: line2},
		{name: "a file", before: line1, want: line1 + line2},
		{name: "a half-written line", before: line1 + `{"loss":0.4,"st`, want: line1 + line2},
		{name: "only a half-written line", before: `{"lo`, want: line2},
		{name: "a long half-written line", before: line1 + strings.Repeat("x", 200_000), want: line1 + line2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.jsonl")
			if tt.before != "" {
				must(t, os.WriteFile(path, []byte(tt.before), 0o644))
			}
			l, err := NewJSONLines(path)
			must(t, err)
			l.now = noon
			must(t, l.Scalars(2, map[string]float64{"loss": math.Inf(1), "acc": math.NaN()}), l.Close())
			if got := read(t, path); got != tt.want {
				t.Errorf("file:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

func TestCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.csv")
	for _, session := range [][]map[string]float64{
		{{"loss": 0.5}, {"loss": 0.25, "acc, top 1": 0.75}},
		{{"acc, top 1": 1}, {"loss": math.NaN(), "val/loss": math.Inf(-1)}},
	} {
		l, err := NewCSV(path)
		must(t, err)
		l.now = noon
		for step, values := range session {
			must(t, l.Scalars(int64(step), values))
		}
		must(t, l.Close())
	}
	want := strings.ReplaceAll(`step,time,loss,"acc, top 1",val/loss
0,T,0.5,,
1,T,0.25,0.75,
0,T,,1,
1,T,NaN,,-Inf
`, "T", "2026-01-02T12:00:00Z")
	if got := read(t, path); got != want {
		t.Errorf("file:\n%s\nwant:\n%s", got, want)
	}
}

func TestCSVRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.csv")
	must(t, os.WriteFile(path, []byte("a,b\n1,2\n"), 0o644))
	if _, err := NewCSV(path); err == nil || !strings.Contains(err.Error(), "another program's file") {
		t.Errorf("another program's file: %v", err)
	}
	l, err := NewCSV(filepath.Join(t.TempDir(), "new.csv"))
	must(t, err)
	if err := l.Scalars(1, map[string]float64{"time": 2}); err == nil || !strings.Contains(err.Error(), `"time"`) {
		t.Errorf("a metric named as a column: %v", err)
	}
}

// TestMaskedCRC compares the checksum with that of an empty record's length in TensorFlow's own
// files.
func TestMaskedCRC(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want uint32
	}{
		{name: "nothing", want: 0xa282ead8},
		// RFC 3720, B.4: the CRC-32C of 32 zeros is 0x8a9136aa.
		{name: "32 zeros", data: make([]byte, 32), want: (0x8a9136aa>>15 | 0x8a9136aa<<17&0xffffffff) + 0xa282ead8 - 1<<32},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := maskedCRC(tt.data); got != tt.want {
				t.Errorf("maskedCRC: %#x, want %#x", got, tt.want)
			}
		})
	}
}

func TestHistogram(t *testing.T) {
	tests := []struct {
		name               string
		values             []float64
		count, sum         float64
		buckets, notFinite int
	}{
		{name: "none"},
		{name: "one value", values: []float64{3, 3}, count: 2, sum: 6, buckets: 1},
		{name: "a range", values: []float64{0, 1, 2, 3}, count: 4, sum: 6, buckets: 64},
		{name: "not finite", values: []float64{math.NaN(), 1, math.Inf(1), 2}, count: 2, sum: 3, buckets: 64, notFinite: 2},
		{name: "the widest range", values: []float64{-math.MaxFloat64, math.MaxFloat64}, count: 2, buckets: 64},
		{name: "beside zero", values: []float64{math.MaxFloat64, -math.MaxFloat64, 0}, count: 3, buckets: 64},
		{name: "the smallest values", values: []float64{5e-324, 0, -5e-324}, count: 3, buckets: 1},
		{name: "close values", values: []float64{1, math.Nextafter(1, 2), math.Nextafter(1, 0)}, count: 3, sum: 3, buckets: 1},
		{name: "large values", values: []float64{1e300, math.Nextafter(1e300, 2e300)}, count: 2, sum: 2e300, buckets: 1},
		{name: "the narrowest range", values: []float64{1, math.Nextafter(1, 2)}, count: 2, sum: 2 + 0x1p-52, buckets: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, notFinite := newHistogram(tt.values)
			total := 0.0
			for _, n := range h.counts {
				total += n
			}
			if h.count != tt.count || total != tt.count || h.sum != tt.sum || len(h.limits) != tt.buckets || notFinite != tt.notFinite {
				t.Errorf("histogram: %+v, %d not finite, %v in buckets; want %+v", h, notFinite, total, tt)
			}
		})
	}
}

func TestMLflowName(t *testing.T) {
	tests := []struct{ name, want string }{
		{"loss", "loss"}, {"train/loss", "train/loss"}, {"Mean Loss (#loss)", "Mean Loss __loss_"},
		{"../../x", ".._.._x"}, {"/etc/x", "_etc_x"}, {"a//b", "a__b"}, {"..", ".._"}, {"", "_"},
	}
	for _, tt := range tests {
		if got := mlflowName(tt.name); got != tt.want {
			t.Errorf("mlflowName(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMLflowAddress(t *testing.T) {
	tests := []struct{ uri, fails string }{
		{uri: "http://127.0.0.1:5000"}, {uri: "https://mlflow.example.org"},
		{uri: "", fails: "no tracking server is given"}, {uri: "mlruns", fails: "mlruns is not the address"},
		{uri: "file:///a/mlruns", fails: "is not the address"}, {uri: "sqlite:///runs.db", fails: "is not the address"},
		{uri: "databricks://user:secret@x", fails: "databricks://user:xxxxx@x is not the address"},
	}
	for _, tt := range tests {
		err := checkAddress(tt.uri)
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("checkAddress(%q) = %v; want %q", tt.uri, err, tt.fails)
		}
	}
}

func TestCurves(t *testing.T) {
	dir := t.TempDir()
	history := filepath.Join(dir, "metrics.jsonl")
	lines, err := NewJSONLines(history)
	must(t, err)
	for step := range int64(3) {
		must(t, lines.Scalars(step, map[string]float64{"train/loss": 3 - float64(step)}))
	}
	must(t, lines.Close())
	l, err := NewCurves(CurvesOptions{Dir: filepath.Join(dir, "curves"), History: history, Every: time.Hour})
	must(t, err)
	must(t, l.Scalars(2, map[string]float64{"train/loss": 0.5, "val/loss": 0.6, "acc": math.NaN()}))
	if got := len(l.points["train/loss"]); got != 3 || l.points["train/loss"][2].Y != 0.5 {
		t.Errorf("train/loss: %v, want two points of the history and the new one", l.points["train/loss"])
	}
	must(t, l.Scalars(3, map[string]float64{"acc": 0.9}), l.Image(7, "samples", image.NewGray(image.Rect(0, 0, 4, 3))), l.Close())
	for _, name := range []string{"loss.png", "acc.png", "images/samples/step-00000007.png"} {
		img, err := png.Decode(strings.NewReader(read(t, filepath.Join(dir, "curves", name))))
		if err != nil || img.Bounds().Empty() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// broken is a logger that does what a test tells it to.
type broken struct {
	record
	mu      sync.Mutex
	steps   []int64
	scalars func() error
}

func (b *broken) Scalars(step int64, _ map[string]float64) error {
	b.mu.Lock()
	b.steps = append(b.steps, step)
	b.mu.Unlock()
	if b.scalars == nil {
		return nil
	}
	return b.scalars()
}

func (b *broken) Close() error { return nil }

func TestMulti(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	const short = 50 * time.Millisecond
	var late sync.Once
	tests := []struct {
		name    string
		scalars func() error
		options MultiOptions
		want    []string // in the report and in Close's error
		report  string
	}{
		{name: "all well", options: MultiOptions{}},
		{name: "it fails", scalars: func() error { return errors.New("disk full") }, want: []string{"disk full", "100 records lost"}, report: "disk full"},
		{name: "it panics", scalars: func() error { panic("oh") }, want: []string{"panic: oh"}, report: "panic: oh"},
		{name: "it hangs", scalars: func() error { <-release; return nil }, options: MultiOptions{Timeout: short, CloseTimeout: 4 * short},
			want: []string{"not closed within 200ms, 99 records lost"}, report: "has taken more than 50ms"},
		{name: "it hangs for a while", scalars: func() error { late.Do(func() { time.Sleep(2 * short) }); return nil }, options: MultiOptions{Timeout: short},
			report: "has taken more than 50ms"},
		{name: "its queue is full", scalars: func() error { <-release; return nil }, options: MultiOptions{Queue: 8, CloseTimeout: short},
			want: []string{"8 records is full"}, report: "too slow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var report lockedBuffer
			tt.options.Stderr = &report
			good := &broken{}
			if tt.options.Queue == 8 {
				good = nil
			}
			bad := &broken{scalars: tt.scalars}
			loggers := []Logger{bad}
			if good != nil {
				loggers = append(loggers, good)
			}
			m := NewMulti(tt.options, loggers...)
			start := time.Now()
			for step := range int64(100) {
				must(t, m.Scalars(step, map[string]float64{"loss": 1}))
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("100 records took the training %s", took)
			}
			err := m.Close()
			if (err != nil) != (tt.want != nil) {
				t.Errorf("Close: %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Close: %v, want %q", err, want)
				}
			}
			if got := report.String(); !strings.Contains(got, tt.report) || strings.Count(got, "\n") != min(1, len(tt.report)) {
				t.Errorf("reported: %q, want %q once", got, tt.report)
			}
			if good != nil && len(good.steps) != 100 {
				t.Errorf("the other logger got %d of 100 records", len(good.steps))
			}
		})
	}
}

// TestCloneImage checks that the pixels and the bounds stay the same, because the training draws on
// the image again.
func TestCloneImage(t *testing.T) {
	img := image.NewGray(image.Rect(1, 1, 3, 3))
	img.Pix[0] = 7
	clone := cloneImage(img)
	img.Pix[0] = 9
	if got := clone.(*image.Gray).GrayAt(1, 1).Y; got != 7 {
		t.Errorf("the copy's pixel is %d, want 7", got)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
