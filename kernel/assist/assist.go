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

// answerTime is how long gopls may take to answer.
const answerTime = time.Minute

// The names of the two files that gopls sees in the module's folder. They are never written to
// disk: cellFile is the cell, sessionFile what the session declared before.
const (
	sessionFile = "main.go"
	cellFile    = "gonbatch__cell.go"
)

// hiddenFiles are files that GoNB and the build of a cell create, rewrite and remove in the
// module's folder while gopls loads it. gopls is shown empty files in their place, so that it
// doesn't look for them on disk.
var hiddenFiles = append([]string{"other.go", "main_test.go"}, build.OwnFiles()...)

// Options configure an Assistant.
type Options struct {
	// Program is gopls. If it is empty, there are no answers.
	Program string
	// Dir returns the folder of the session's module, once there is one.
	Dir func() (string, error)
	// Built is the file with the last program that the session built.
	Built string
	// Environ is gopls's environment, as in os.Environ.
	Environ []string
	// Log receives errors of background work, and gopls's own output.
	Log io.Writer
}

// Match is one way to complete code.
type Match struct {
	// Text replaces the code between Start and End. Type is its kind, such as "function", Signature
	// its Go type.
	Text, Type, Signature string
}

// Completion lists possible continuations of code.
type Completion struct {
	Matches []Match
	// Start and End delimit, in characters, the code that a match replaces.
	Start, End int
}

// Assistant answers questions about code. Its methods block; concurrent calls wait for one another.
type Assistant struct {
	opts Options

	mu     sync.Mutex
	server *server
	// warmed are the session's imports whose packages gopls has read.
	warmed string
}

// New returns an Assistant. It starts nothing before the first call.
func New(opts Options) *Assistant { return &Assistant{opts: opts} }

// Close stops gopls.
func (a *Assistant) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		a.server.stop()
		a.server = nil
	}
}

// Warm makes the following answers fast: it starts gopls if necessary, and lets it read the
// packages that the session imports. It costs nothing if these are the same as before.
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

// Complete completes code before character number at.
func (a *Assistant) Complete(ctx context.Context, code string, at int) (Completion, error) {
	var list protocol.CompletionList
	doc, err := a.ask(ctx, protocol.MethodTextDocumentCompletion, code, at, &list)
	if err != nil || doc == nil {
		return Completion{Start: at, End: at}, err
	}
	return doc.completion(list.Items, at, doc.position(at)), nil
}

// Inspect describes the identifier at a character of code, in Markdown; it returns "" if there is
// none.
func (a *Assistant) Inspect(ctx context.Context, code string, at int) (string, error) {
	var hover *protocol.Hover
	if _, err := a.ask(ctx, protocol.MethodTextDocumentHover, code, identifierAt(code, at), &hover); err != nil || hover == nil {
		return "", err
	}
	return hover.Contents.Value, nil
}

// ask shows gopls the code, and asks it about a character. It returns what gopls saw; nil if there
// is no gopls.
func (a *Assistant) ask(ctx context.Context, method, code string, at int, answer any) (*document, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	doc, s, err := a.open(ctx, code)
	if err != nil || s == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := s.call(ctx, method, s.at(cellFile, doc.position(at)), answer); err != nil {
		return nil, a.failed(err)
	}
	return doc, nil
}

// open shows gopls the code. The server is nil if there is no gopls.
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

// start starts gopls if it is not running.
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

// failed gives up on a gopls that doesn't answer: the next request starts another one.
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

// completion returns the items that replace text around the cursor, all of them the same part of
// its line.
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

// fileURI returns the name by which gopls knows a file.
func fileURI(dir, name string) protocol.DocumentURI { return uri.File(filepath.Join(dir, name)) }
