package assist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// niceness gives the cells priority.
const niceness = "10"

// pipeTime is how long gopls's log is read after its end, if a go command that it has left behind
// holds it open.
const pipeTime = time.Second

// server is a running gopls.
type server struct {
	dir   string
	cmd   *exec.Cmd
	conn  jsonrpc2.Conn
	ended chan struct{}
	// shown maps files to the content that gopls has seen, version is the number of the last
	// one.
	shown   map[string]string
	version int32
	disk    *disk
}

// pipe joins a process's standard output and input.
type pipe struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipe) Write(data []byte) (int, error) { return p.in.Write(data) }

func (p pipe) Close() error { return errors.Join(p.in.Close(), p.ReadCloser.Close()) }

// startServer starts gopls for the module in a folder. gopls ends with stop, and when this process
// ends. The latter takes a signal, because gopls doesn't always end with its standard input.
func startServer(ctx context.Context, opts Options, dir string) (*server, error) {
	args := []string{opts.Program}
	if nice, err := exec.LookPath("nice"); err == nil {
		args = []string{nice, "-n", niceness, opts.Program}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(opts.Environ), "PWD="+dir, "GONB_TMP_DIR="+dir)
	cmd.Stderr, cmd.WaitDelay = opts.Log, pipeTime
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, cmd: cmd, ended: make(chan struct{}), shown: map[string]string{}, disk: newDisk(dir)}
	s.conn = jsonrpc2.NewConn(jsonrpc2.NewStream(pipe{out, in}))
	started := make(chan error)
	go s.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", opts.Program, err)
	}
	s.conn.Go(context.WithoutCancel(ctx), answerServer)
	if err := s.initialize(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("start %s: %w", opts.Program, err)
	}
	return s, nil
}

// run starts the process, reports an error, and ends the process when the connection ends.
func (s *server) run(started chan<- error) {
	// Linux signals the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.ended)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := s.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	<-s.conn.Done()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// settings configure gopls: its diagnostics are not shown, and a kernel has no key to accept a
// completion's additional edits.
var settings = map[string]any{
	"completeUnimported": true, "diagnosticsTrigger": "Save", "diagnosticsDelay": "1h", "staticcheck": false, "vulncheck": "Off",
	"hoverKind": "FullDocumentation", "linksInHover": false, "usePlaceholders": false, "semanticTokens": false,
}

func (s *server) initialize(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	params := protocol.InitializeParams{
		InitializationOptions: settings,
		Capabilities: protocol.ClientCapabilities{TextDocument: &protocol.TextDocumentClientCapabilities{
			Hover: &protocol.HoverTextDocumentClientCapabilities{ContentFormat: []protocol.MarkupKind{protocol.Markdown}},
		}},
		WorkspaceFolders: []protocol.WorkspaceFolder{{URI: string(fileURI(s.dir, "")), Name: "session"}},
	}
	var result json.RawMessage
	if err := s.call(ctx, protocol.MethodInitialize, params, &result); err != nil {
		return err
	}
	return s.conn.Notify(ctx, protocol.MethodInitialized, protocol.InitializedParams{})
}

// answerServer answers gopls's requests to its client: none of them matters here.
func answerServer(ctx context.Context, reply jsonrpc2.Replier, request jsonrpc2.Request) error {
	return reply(ctx, nil, nil)
}

// call calls gopls and waits for its result, or until gopls ends.
func (s *server) call(ctx context.Context, method string, params, result any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-s.ended:
			cancel(errEnded)
		}
	}()
	if _, err := s.conn.Call(ctx, method, params, result); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

var errEnded = errors.New("it has ended")

// show gives gopls the text of a file, whatever is on disk.
func (s *server) show(ctx context.Context, name, text string) error {
	before, open := s.shown[name]
	if open && before == text {
		return nil
	}
	s.version++
	s.shown[name] = text
	if !open {
		return s.conn.Notify(ctx, protocol.MethodTextDocumentDidOpen, protocol.DidOpenTextDocumentParams{
			TextDocument: protocol.TextDocumentItem{URI: fileURI(s.dir, name), LanguageID: "go", Version: s.version, Text: text},
		})
	}
	// The library's type of a change always has a range. Without a range, the text replaces the
	// whole file.
	return s.conn.Notify(ctx, protocol.MethodTextDocumentDidChange, map[string]any{
		"textDocument":   map[string]any{"uri": fileURI(s.dir, name), "version": s.version},
		"contentChanges": []map[string]string{{"text": text}},
	})
}

// hide shows gopls the files that it must not look for on disk.
func (s *server) hide(ctx context.Context) error {
	for _, name := range hiddenFiles {
		if err := s.show(ctx, name, "package main\n"); err != nil {
			return err
		}
	}
	return nil
}

// watch tells gopls which files on disk have changed.
func (s *server) watch(ctx context.Context) error {
	var events []*protocol.FileEvent
	for _, name := range s.disk.changes() {
		events = append(events, &protocol.FileEvent{URI: fileURI("", name), Type: protocol.FileChangeTypeChanged})
	}
	if len(events) == 0 {
		return nil
	}
	return s.conn.Notify(ctx, protocol.MethodWorkspaceDidChangeWatchedFiles, protocol.DidChangeWatchedFilesParams{Changes: events})
}

func (s *server) at(name string, place protocol.Position) protocol.TextDocumentPositionParams {
	return protocol.TextDocumentPositionParams{TextDocument: protocol.TextDocumentIdentifier{URI: fileURI(s.dir, name)}, Position: place}
}

func (s *server) alive() bool {
	select {
	case <-s.ended:
		return false
	case <-s.conn.Done():
		return false
	default:
		return true
	}
}

func (s *server) stop() {
	_ = s.conn.Close()
	_ = s.cmd.Process.Kill()
	<-s.ended
}
