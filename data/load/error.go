package load

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
)

// Error says which example of a dataset or a stream can't be loaded.
type Error struct {
	// Dataset is the dataset's name, or the stream's.
	Dataset string
	// Examples are the numbers of the examples: one, or those of the whole batch if each of them
	// can be loaded alone.
	Examples []int
	// Place says which example of a stream it is. Then Examples is empty.
	Place string
	// Err is the dataset's error. If the dataset has panicked, it has the stack trace (%+v).
	Err error
}

// shownExamples limits the numbers in a message.
const shownExamples = 5

func (e *Error) Error() string {
	if e.Place != "" {
		return fmt.Sprintf("decode %s of the stream %s: %v", e.Place, e.Dataset, e.Err)
	}
	if len(e.Examples) == 1 {
		return fmt.Sprintf("load example %d of %s: %v", e.Examples[0], e.Dataset, e.Err)
	}
	shown, dots := e.Examples, ""
	if len(shown) > shownExamples {
		shown, dots = shown[:shownExamples], " ..."
	}
	return fmt.Sprintf("load the batch of the %d examples %d%s of %s: %v", len(e.Examples), shown, dots, e.Dataset, e.Err)
}

// Unwrap returns the dataset's error.
func (e *Error) Unwrap() error { return e.Err }

// searchTime limits the search for the example that fails: a dataset that has failed may hang.
const searchTime = 10 * time.Second

// blame returns which example has caused the error of a batch, and its own error; -1 if each of
// them can be loaded alone. To find the example, it loads the examples one by one.
func blame(indices []int, err error, load func(index int) error) (index int, own error) {
	if len(indices) == 1 {
		return indices[0], err
	}
	type failure struct {
		index int
		err   error
	}
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	found := make(chan failure, 1)
	go func() {
		defer cancel()
		for _, index := range indices {
			if ctx.Err() != nil {
				return
			}
			if err := load(index); err != nil {
				found <- failure{index, err}
				return
			}
		}
	}()
	<-ctx.Done()
	select {
	case one := <-found:
		return one.index, one.err
	default:
		return -1, err
	}
}

// panicked is the error of a panic. It has a stack trace, which has the place of the panic.
func panicked(value any) error {
	if err, ok := value.(error); ok {
		return errors.WithStack(fmt.Errorf("panic: %w", err))
	}
	return errors.WithStack(fmt.Errorf("panic: %v", value))
}
