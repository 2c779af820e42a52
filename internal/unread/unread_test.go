package unread

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pkgerrors "github.com/pkg/errors"
)

// TestError: an error is read by what shows or examines it, and otherwise told after a second,
// once, and at the end.
func TestError(t *testing.T) {
	for name, test := range map[string]struct {
		look func(err error)
		read bool
	}{
		"dropped":  {look: func(error) {}},
		"nil":      {look: func(err error) { _ = err == nil }},
		"joined":   {look: func(err error) { _ = errors.Join(err, nil) }},
		"compared": {look: func(err error) { _ = err == fs.ErrExist }}, //nolint:errorlint // this is the test
		"again":    {look: func(err error) { _ = Error("trainer.Predict", err) }},
		"text":     {look: func(err error) { _ = err.Error() }, read: true},
		"wrapped":  {look: func(err error) { _ = fmt.Errorf("fit: %w", err) }, read: true},
		"printed":  {look: func(err error) { _ = fmt.Sprint(err) }, read: true},
		"is":       {look: func(err error) { _ = errors.Is(err, fs.ErrExist) }, read: true},
		"as":       {look: func(err error) { _, _ = errors.AsType[*fs.PathError](err) }, read: true},
		"log":      {look: func(err error) { _ = fmt.Sprintf("%+v %s %q", err, err, err) }, read: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				registry.out = &out
				defer func() { registry.out = os.Stderr }()
				err := Error("trainer.Fit", fs.ErrNotExist)
				if test.look(err); Is(err) == test.read {
					t.Errorf("Is: %v, read: %v", !test.read, test.read)
				}
				time.Sleep(patience / 2)
				if out.Len() > 0 {
					t.Errorf("said at once: %s", &out)
				}
				time.Sleep(3 * patience)
				synctest.Wait()
				at := "trainer.Fit ("
				want := " has failed, and nobody has looked at the error that it returns: file does not exist"
				if said := strings.Count(out.String(), want+"\n"); test.read != (said == 0) || said > 1 {
					t.Errorf("said %q, read: %v", &out, test.read)
				}
				if left := Take(); test.read != (len(left) == 0) || !test.read && (!strings.HasPrefix(left[0], at) || !strings.HasSuffix(left[0], want)) {
					t.Errorf("left %q, read: %v", left, test.read)
				}
				if left := Take(); left != nil {
					t.Errorf("left after Take: %q", left)
				}
			})
		})
	}
}

// TestTransparent: nobody sees a difference to the error itself.
func TestTransparent(t *testing.T) {
	if err := Error("trainer.Fit", nil); err != nil {
		t.Errorf("an error of nil: %v", err)
	}
	plain := pkgerrors.WithStack(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist})
	err := Error("trainer.Fit", plain)
	for _, verb := range []string{"%v", "%+v", "%s", "%q", "%30s"} {
		if got, want := fmt.Sprintf(verb, err), fmt.Sprintf(verb, plain); got != want {
			t.Errorf("%s: %q, want %q", verb, got, want)
		}
	}
	if failed, ok := errors.AsType[*fs.PathError](err); !ok || failed.Path != "x" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it doesn't wrap what it should: %v", err)
	}
}
