package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/internal/fetch"
)

func TestFile(t *testing.T) {
	half := len(content) / 2
	tests := []struct {
		name     string
		noSum    bool
		handle   func(n int, w http.ResponseWriter, r *http.Request)
		requests int
		wantErr  []string // parts of the message; nil: success
		wantIs   error
	}{
		{
			name:     "plain",
			handle:   func(_ int, w http.ResponseWriter, r *http.Request) { whole(content, w, r) },
			requests: 1,
		}, {
			name: "cut once",
			handle: func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 0 {
					cut(content, half, w)
					return
				}
				whole(content, w, r)
			},
			requests: 2,
		}, {
			name:     "truncated every time",
			handle:   func(_ int, w http.ResponseWriter, r *http.Request) { cut(content, half, w) },
			requests: 3,
			wantErr:  []string{"truncated download", fmt.Sprintf("%d of %d bytes", half, len(content)), "fix: download it elsewhere"},
			wantIs:   fetch.ErrTruncated,
		}, {
			name: "same size, wrong content",
			handle: func(_ int, w http.ResponseWriter, r *http.Request) {
				whole(bytes.ToUpper(content), w, r)
			},
			requests: 1,
			wantErr:  []string{"wrong checksum", sum(content), sum(bytes.ToUpper(content))},
			wantIs:   fetch.ErrChecksum,
		}, {
			name: "login page",
			handle: func(_ int, w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "<html>please log in</html>")
			},
			requests: 1,
			wantErr:  []string{"26 bytes, not 320000"},
		}, {
			name: "no length, and cut once",
			handle: func(n int, w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush() // So it is not known.
				_, _ = w.Write(content[:len(content)/(2-min(n, 1))])
			},
			requests: 2,
		}, {
			name: "no length, and far too much",
			handle: func(_ int, w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				for r.Context().Err() == nil {
					if _, err := w.Write(content); err != nil {
						return
					}
				}
			},
			requests: 1,
			wantErr:  []string{"320001 bytes, not 320000"},
			wantIs:   fetch.ErrChecksum,
		}, {
			name:     "404 is final",
			handle:   func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
			requests: 1,
			wantErr:  []string{"404 Not Found", "put it at"},
		}, {
			name: "500, 503, then fine",
			handle: func(n int, w http.ResponseWriter, r *http.Request) {
				if n < 2 {
					w.WriteHeader([]int{500, 503}[n])
					return
				}
				whole(content, w, r)
			},
			requests: 3,
		}, {
			name:     "500 forever",
			handle:   func(_ int, w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) },
			requests: 3,
			wantErr:  []string{"gave up after 3 attempts", "500 Internal Server Error"},
		}, {
			name: "stall, then fine",
			handle: func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 0 {
					cut(content, half, w)
					w.(http.Flusher).Flush()
					<-r.Context().Done()
					return
				}
				whole(content, w, r)
			},
			requests: 2,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, tc.handle)
			path := filepath.Join(t.TempDir(), "new", "folder", "f.bin")
			write(t, filepath.Join(filepath.Dir(path), ".f.bin.123.tmp"), content[:10]) // Of a killed process.
			src := fetch.Source{URLs: []string{s.URL + "/f.bin"}, SHA256: sum(content), Size: int64(len(content))}
			if tc.noSum {
				src.SHA256 = ""
			}
			err := fetch.File(context.Background(), src, path, quick())
			checkError(t, err, tc.wantErr, tc.wantIs)
			if got := s.requests(); got != tc.requests {
				t.Errorf("%d requests, want %d", got, tc.requests)
			}
			if tc.wantErr == nil {
				checkFile(t, path, content)
			} else if exists(path) {
				t.Errorf("%s is there in spite of the error", path)
			}
			if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) > 2 {
				t.Errorf("%v is left, %v", entries, err) // The file and its lock.
			}
		})
	}
}

func TestFileTriesAddressesInOrder(t *testing.T) {
	missing := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	wrong := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(bytes.ToUpper(content), w, r) })
	good := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(content, w, r) })
	spare := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(content, w, r) })
	path := filepath.Join(t.TempDir(), "f")
	src := fetch.Source{SHA256: sum(content), URLs: []string{closedPort(t), missing.URL, wrong.URL, good.URL, spare.URL}}
	if err := fetch.File(context.Background(), src, path, quick()); err != nil {
		t.Fatal(err)
	}
	checkFile(t, path, content)
	for i, want := range []int{1, 1, 1, 0} {
		if got := []*server{missing, wrong, good, spare}[i].requests(); got != want {
			t.Errorf("server %d got %d requests, want %d", i, got, want)
		}
	}
}

func TestFileNamesEveryAddressInItsError(t *testing.T) {
	missing := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	closed := closedPort(t)
	err := fetch.File(context.Background(), fetch.Source{Name: "digits", URLs: []string{closed, missing.URL}}, filepath.Join(t.TempDir(), "f"), quick())
	checkError(t, err, []string{"cannot get digits:", closed + ": cannot connect:", "connection refused", missing.URL + ": the server answered 404", "fix:"}, nil)
	if status, ok := errors.AsType[*fetch.StatusError](err); !ok || status.Code != 404 {
		t.Errorf("StatusError in the chain: %v", status)
	}
	if n := len(fetch.Tries("", err)); n != 2 {
		t.Errorf("%d tries, want 2", n)
	}
}

// A network that swallows packets, or accepts and never answers, must not hold us up for minutes.
func TestFileFailsOverQuickly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, url := range map[string]string{
		"TLS never answers": "https://" + l.Addr().String(), // The kernel accepts; nobody answers.
		"no such host":      "http://host.invalid/",
		"refused":           closedPort(t),
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			err := fetch.File(context.Background(), fetch.Source{URLs: []string{url}}, filepath.Join(t.TempDir(), "f"), fetch.Options{})
			checkError(t, err, []string{"cannot connect"}, nil)
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("took %v with the default limits", took)
			}
		})
	}
}

func TestFileOnceForManyCallers(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		whole(content, w, r)
	})
	path := filepath.Join(t.TempDir(), "f")
	src := fetch.Source{URLs: []string{s.URL}, SHA256: sum(content)}
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range 8 {
		wg.Go(func() {
			if err := fetch.File(context.Background(), src, path, fetch.Options{}); err != nil {
				failed.Add(1)
				t.Error(err)
			}
		})
	}
	wg.Wait()
	checkFile(t, path, content)
	if n := s.requests(); n != 1 || failed.Load() > 0 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestFileThereIsTakenAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, content)
	src := fetch.Source{URLs: []string{closedPort(t)}, SHA256: sum(content), Size: int64(len(content))}
	if err := fetch.File(context.Background(), src, path, quick()); err != nil {
		t.Error(err)
	}
	src.Size++
	if err := fetch.File(context.Background(), src, path, quick()); err == nil {
		t.Error("a file of the wrong size was taken")
	}
}

func TestFileCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		cut(content, 1000, w)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	path := filepath.Join(t.TempDir(), "f")
	src := fetch.Source{URLs: []string{s.URL, s.URL + "/second"}, SHA256: sum(content)}
	err := fetch.File(ctx, src, path, quick())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if n := s.requests(); n != 1 || exists(path) {
		t.Errorf("%d requests after the cancel, file there: %v", n, exists(path))
	}
}

func TestFileDiskErrors(t *testing.T) {
	s := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { whole(content, w, r) })
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), nil)
	if err := os.MkdirAll(filepath.Join(dir, "folder", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, path, want string }{
		{"parent is a file", filepath.Join(dir, "plain", "f"), "not a directory"},
		{"path is a folder", filepath.Join(dir, "folder"), "allow writing of"},
		{"parent is a device", "/dev/full/f", "not a directory"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			src := fetch.Source{URLs: []string{s.URL, s.URL}, SHA256: sum(content)}
			checkError(t, fetch.File(context.Background(), src, tc.path, quick()), []string{tc.want, tc.path}, nil)
		})
	}
	if n := s.requests(); n > 2 {
		t.Errorf("%d requests: the second address was tried though the disk is at fault", n)
	}
}

func TestFileProgressWithoutTerminal(t *testing.T) {
	s := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 0 {
			w.WriteHeader(500)
			return
		}
		whole(content, w, r)
	})
	var out bytes.Buffer
	opts := quick()
	opts.Progress = &out
	src := fetch.Source{Name: "digits", URLs: []string{s.URL}, SHA256: sum(content), Size: int64(len(content))}
	if err := fetch.File(context.Background(), src, filepath.Join(t.TempDir(), "f"), opts); err != nil {
		t.Fatal(err)
	}
	want := []string{"digits: downloading 320.0 kB", "digits: the server answered 500 Internal Server Error; trying again in 1ms", "digits: 320.0 kB in "}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != len(want) {
		t.Fatalf("progress %q, want %d lines", got, len(want))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("line %d is %q, want %q...", i, got[i], want[i])
		}
	}
}
