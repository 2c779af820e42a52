package pjrt_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xlapjrt "github.com/gomlx/go-xla/pjrt"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/compilecache"
)

// folderVariable names the cache's folder for a child process.
const folderVariable = "KEEP_TEST_FOLDER"

// program has a donated argument, whose memory the result reuses, and enough work for several
// threads.
const program = `module @squares {
  func.func public @main(%x: tensor<400x400xf32> {tf.aliasing_output = 0 : i32}) -> tensor<400x400xf32> {
    %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<400x400xf32>, tensor<400x400xf32>) -> tensor<400x400xf32>
    %z = stablehlo.tanh %y : tensor<400x400xf32>
    return %z : tensor<400x400xf32>
  }
}
`

// keepIn caches programs in a folder and returns XLA's client.
func keepIn(t *testing.T, folder string) *xlapjrt.Client {
	t.Helper()
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	cache, err := compilecache.Open(folder, compilecache.Limit, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	pjrt.KeepPrograms(cache)
	t.Cleanup(func() { pjrt.KeepPrograms(nil) })
	plugin, err := xlapjrt.GetPlugin("cpu")
	if err != nil {
		t.Fatal(err)
	}
	client, err := plugin.NewClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Destroy() })
	return client
}

// compiles compiles the program and reports whether XLA had to.
func compiles(t *testing.T, client *xlapjrt.Client, program string) (*xlapjrt.LoadedExecutable, bool) {
	t.Helper()
	before := pjrt.Compilations()
	exec, err := client.Compile().WithStableHLO([]byte(program)).Done()
	if err != nil {
		t.Fatal(err)
	}
	return exec, pjrt.Compilations() > before
}

// TestKept: a loaded program equals the compiled one, including its aliases.
func TestKept(t *testing.T) {
	client := keepIn(t, t.TempDir())
	first, compiled := compiles(t, client, program)
	again, compiledAgain := compiles(t, client, program)
	if !compiled || compiledAgain {
		t.Errorf("compiled at first %v, again %v", compiled, compiledAgain)
	}
	if again.Name != first.Name || again.NumOutputs != first.NumOutputs {
		t.Errorf("compiled it was %s with %d outputs, loaded it is %s with %d", first.Name, first.NumOutputs, again.Name, again.NumOutputs)
	}
	if got, want := again.OnDeviceMemoryUsageStats, first.OnDeviceMemoryUsageStats; got != want || want.Aliases != 4*400*400 {
		t.Errorf("memory of the loaded program %+v, of the compiled one %+v; want all of it aliased", got, want)
	}
}

// TestKey: the key covers everything that changes a program's code.
func TestKey(t *testing.T) {
	client := keepIn(t, t.TempDir())
	compiles(t, client, program)
	for _, other := range []string{strings.Replace(program, "tanh", "cosine", 1), strings.ReplaceAll(program, "400", "401")} {
		if _, compiled := compiles(t, client, other); !compiled {
			t.Errorf("another program was loaded in place of\n%s", other)
		}
	}
	if _, compiled := compiles(t, client, strings.ReplaceAll(program, "%y", "%metric_uuid_1")); compiled {
		t.Error("the same program with another name of a value was compiled")
	}
	plugin, err := xlapjrt.GetPlugin("cpu")
	if err != nil {
		t.Fatal(err)
	}
	two, err := plugin.NewClient(xlapjrt.NamedValuesMap{"cpu_device_count": int64(2)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := two.Destroy(); err != nil {
			t.Error(err)
		}
	})
	if _, compiled := compiles(t, two, program); !compiled {
		t.Error("a program for another number of devices was loaded")
	}
}

// TestPluginFacts: different plugins have different facts, even if their sizes are equal.
func TestPluginFacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin.so")
	seen := map[string]bool{}
	at := time.Now()
	for i, text := range []string{"one", "two", "four", strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20-1) + "y", "y" + strings.Repeat("x", 1<<20-1)} {
		err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
		facts, factsErr := pjrt.FileFacts(path)
		if err := errors.Join(err, factsErr); err != nil || seen[facts] {
			t.Errorf("file %d has the facts of another: %s, %v", i, facts, err)
		}
		seen[facts] = true
	}
	later := at.Add(time.Second)
	err := os.Chtimes(path, later, later)
	if facts, factsErr := pjrt.FileFacts(path); err != nil || factsErr != nil || seen[facts] {
		t.Errorf("a file with another time has the same facts, or the errors are %v, %v", err, factsErr)
	}
}

// TestUnkeepable: nothing is cached if flags make XLA write or read other files.
func TestUnkeepable(t *testing.T) {
	tests := map[string]bool{
		"": false, "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0": false,
		"--xla_dump_to=/tmp/x": true, "--xla_gpu_dump_autotune_results_to=/x": true, "/home/ada/flags": true, " --xla_gpu_autotune_level=0": false,
	}
	for flags, want := range tests {
		if got := pjrt.Unkeepable(flags); got != want {
			t.Errorf("%q: %v, want %v", flags, got, want)
		}
	}
}

// TestSurroundings: a program is loaded only by processes whose XLA would compile it to the same
// code.
func TestSurroundings(t *testing.T) {
	if compileInChild(t) {
		return
	}
	folder, dump := t.TempDir(), t.TempDir()
	tests := []struct {
		name string
		env  string
		want string
	}{
		{"the first process", "", "compiled 1"},
		{"another one", "", "compiled 0"},
		{"a variable that does not count", "LANG=C", "compiled 0"},
		{"XLA's flags", "XLA_FLAGS=--xla_backend_optimization_level=0", "compiled 1"},
		{"the same flags", "XLA_FLAGS=--xla_backend_optimization_level=0", "compiled 0"},
		{"the number of threads", "NPROC=3", "compiled 1"},
		{"a dump", "XLA_FLAGS=--xla_dump_to=" + dump, "compiled 1"},
		{"a dump again", "XLA_FLAGS=--xla_dump_to=" + dump, "compiled 1"},
		{"options of go-xla", "XLA_DEBUG_OPTIONS=xla_cpu_parallel_codegen_split_count: 8", "compiled 1"},
		{"these again", "XLA_DEBUG_OPTIONS=xla_cpu_parallel_codegen_split_count: 8", "compiled 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if out := startTogether(t, 1, folder, test.env)[0]; !strings.Contains(out, test.want+"\n") {
				t.Errorf("%s, want %s", out, test.want)
			}
		})
	}
}

// compileInChild is the body of a process of startTogether.
func compileInChild(t *testing.T) bool {
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return false
	}
	client := keepIn(t, folder)
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	compiles(t, client, program)
	fmt.Printf("compiled %d\n", pjrt.Compilations())
	return true
}

// TestKeptOnce: if eight processes start at once with an empty cache, XLA compiles a program once.
func TestKeptOnce(t *testing.T) {
	if compileInChild(t) {
		return
	}
	const processes = 8
	folder := t.TempDir()
	outputs := startTogether(t, processes, folder)
	compiled := 0
	for _, out := range outputs {
		compiled += strings.Count(out, "compiled 1\n")
		if !strings.Contains(out, "compiled ") {
			t.Errorf("a process printed only: %s", out)
		}
	}
	if compiled != 1 {
		t.Errorf("%d of %d processes have compiled: %q", compiled, processes, outputs)
	}
}

// startTogether starts this test in processes that begin once all are ready, and returns what they
// print after that.
func startTogether(t *testing.T, processes int, folder string, env ...string) (outputs []string) {
	t.Helper()
	var commands []*exec.Cmd
	var inputs []io.Closer
	var readers []*bufio.Reader
	for range processes {
		name, _, _ := strings.Cut(t.Name(), "/")
		cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$")
		cmd.Env = append(append(os.Environ(), folderVariable+"="+folder), env...)
		cmd.Stderr = os.Stderr
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		commands, inputs, readers = append(commands, cmd), append(inputs, in), append(readers, bufio.NewReader(out))
	}
	for _, out := range readers {
		if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	for _, in := range inputs {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	for i, out := range readers {
		text, err := io.ReadAll(out)
		if err := errors.Join(err, commands[i].Wait()); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		outputs = append(outputs, string(text))
	}
	return outputs
}
