package assist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.lsp.dev/protocol"
	"go.lsp.dev/uri"

	"gonbatch/kernel/build"
)

// answerTime is how long gopls may take for an answer.
const answerTime = time.Minute

// The names of the two files that gopls sees in the module's folder. They are not written: the
// second is the cell, the first what the session has declared before.
const (
	sessionFile = "main.go"
	cellFile    = "gonbatch__cell.go"
)

// hiddenFiles are those that GoNB and the build of a cell put into the module's folder, rewrite and
// take away while gopls loads it. It is shown empty ones in their place, so that it looks for none
// of them on disk.
var hiddenFiles = append([]string{"other.go", "main_test.go"}, build.OwnFiles()...)

// Options say what an Assistant asks.
type Options struct {
	// Program is gopls. Unset, there are no answers.
	Program string
	// Dir tells the folder of the session's module, once there is one.
	Dir func() (string, error)
	// Built is the file with the program that the session has built last.
	Built string
	// Environ is gopls's environment, as in os.Environ.
	Environ []string
	// Log receives errors that nobody asks for, and gopls's own.
	Log io.Writer
}

// Match is one way to complete code.
type Match struct {
	// Text replaces the code between Start and End. Type is what it is, such as "function",
	// Signature its Go type.
	Text, Type, Signature string
}

// Completion is what code may continue with.
type Completion struct {
	Matches []Match
	// Start and End are the places, in characters, between which a match replaces the code.
	Start, End int
}

// Assistant answers questions about code. Its methods block; they may be called at once, and wait
// for one another.
type Assistant struct {
	opts Options

	mu     sync.Mutex
	server *server
	// warmed are the imports of the session of which gopls has read the packages.
	warmed string
}

// New makes an Assistant. It starts nothing before the first call.
func New(opts Options) *Assistant { return &Assistant{opts: opts} }

// Close ends gopls.
func (a *Assistant) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		a.server.stop()
		a.server = nil
	}
}

// Warm makes the answers that follow quick: it starts gopls if need be, and lets it read the
// packages that the session imports. It costs nothing if they are the same as before.
func (a *Assistant) Warm(ctx context.Context) {
	const code = "%%\nfmt.Print"
	if a.isWarm() {
		return
	}
	if _, err := a.Complete(ctx, code, len(code)); err != nil && ctx.Err() == nil {
		a.log(fmt.Errorf("completion: %w", err))
	}
}

func (a *Assistant) isWarm() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	imports := importText(a.opts.Built)
	same := a.server != nil && a.server.alive() && imports == a.warmed
	a.warmed = imports
	return same
}

// Complete completes code before its character number at.
func (a *Assistant) Complete(ctx context.Context, code string, at int) (Completion, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	none := Completion{Start: at, End: at}
	doc, s, err := a.open(ctx, code)
	if err != nil || s == nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var list protocol.CompletionList
	place := doc.position(at)
	params := protocol.CompletionParams{TextDocumentPositionParams: s.at(cellFile, place)}
	if err := s.call(ctx, protocol.MethodTextDocumentCompletion, params, &list); err != nil {
		return none, a.failed(err)
	}
	return doc.completion(list.Items, at, place), nil
}

// Inspect tells about the identifier at a character of code, in Markdown; "" if there is none.
func (a *Assistant) Inspect(ctx context.Context, code string, at int) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	doc, s, err := a.open(ctx, code)
	if err != nil || s == nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var hover *protocol.Hover
	params := protocol.HoverParams{TextDocumentPositionParams: s.at(cellFile, doc.position(identifierAt(code, at)))}
	if err := s.call(ctx, protocol.MethodTextDocumentHover, params, &hover); err != nil {
		return "", a.failed(err)
	}
	if hover == nil {
		return "", nil
	}
	return hover.Contents.Value, nil
}

// open lets gopls see the code. The server is nil if there is no gopls.
func (a *Assistant) open(ctx context.Context, code string) (*document, *server, error) {
	if a.opts.Program == "" {
		return nil, nil, nil
	}
	s, err := a.start(ctx)
	if err != nil {
		return nil, nil, err
	}
	built, err := os.ReadFile(a.opts.Built)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	doc, session := compose(code, string(built))
	err = errors.Join(s.hide(ctx), s.watch(ctx), s.show(ctx, sessionFile, session), s.show(ctx, cellFile, doc.text))
	if err != nil {
		return nil, nil, a.failed(err)
	}
	return doc, s, nil
}

// start starts gopls if it does not run.
func (a *Assistant) start(ctx context.Context) (*server, error) {
	if a.server != nil && a.server.alive() {
		return a.server, nil
	}
	dir, err := a.opts.Dir()
	if err != nil {
		return nil, err
	}
	a.server, err = startServer(ctx, a.opts, dir)
	return a.server, err
}

// failed gives up a gopls that does not answer: the next request starts another.
func (a *Assistant) failed(err error) error {
	if a.server != nil && (errors.Is(err, context.DeadlineExceeded) || !a.server.alive()) {
		a.server.stop()
		a.server = nil
	}
	return fmt.Errorf("gopls: %w", err)
}

func (a *Assistant) log(err error) {
	if a.opts.Log != nil {
		fmt.Fprintf(a.opts.Log, "kernel: %v\n", err)
	}
}

// completion are those items that replace what is around the cursor, all the same part of its line.
func (d *document) completion(items []protocol.CompletionItem, at int, place protocol.Position) Completion {
	done := Completion{Start: at, End: at}
	var replaced *protocol.Range
	for _, item := range items {
		edit := item.TextEdit
		if edit == nil || !around(edit.Range, place) || strings.HasPrefix(item.Label, "gonbatch__") {
			continue
		}
		if replaced == nil {
			replaced = &edit.Range
		}
		if edit.Range == *replaced {
			done.Matches = append(done.Matches, Match{Text: edit.NewText, Type: strings.ToLower(item.Kind.String()), Signature: item.Detail})
		}
	}
	if replaced != nil {
		done.Start -= charactersBefore(d.code, at, int(place.Character-replaced.Start.Character))
		done.End += charactersAfter(d.code, at, int(replaced.End.Character-place.Character))
	}
	return done
}

func around(r protocol.Range, place protocol.Position) bool {
	return r.Start.Line == place.Line && r.End.Line == place.Line && r.Start.Character <= place.Character && place.Character <= r.End.Character
}

// fileURI is the name by which gopls knows a file.
func fileURI(dir, name string) protocol.DocumentURI { return uri.File(filepath.Join(dir, name)) }
