package load

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
)

// Error says which example of a dataset can't be loaded.
type Error struct {
	// Dataset is the dataset's name.
	Dataset string
	// Examples are the numbers of the examples: one, or those of the whole batch if each of them
	// can be loaded alone.
	Examples []int
	// Err is the dataset's error. If the dataset has panicked, it has the stack trace (%+v).
	Err error
}

// shownExamples limits the numbers in a message.
const shownExamples = 5

func (e *Error) Error() string {
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

// blame returns the error of a batch. To find the example, it loads the examples one by one.
func blame(dataset string, indices []int, err error, load func(index int) error) error {
	if len(indices) == 1 {
		return &Error{dataset, indices, err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	found := make(chan *Error, 1)
	go func() {
		defer cancel()
		for _, index := range indices {
			if ctx.Err() != nil {
				return
			}
			if err := load(index); err != nil {
				found <- &Error{dataset, []int{index}, err}
				return
			}
		}
	}()
	<-ctx.Done()
	select {
	case one := <-found:
		return one
	default:
		return &Error{dataset, indices, err}
	}
}

// panicked is the error of a panic. It has a stack trace, which has the place of the panic.
func panicked(value any) error {
	if err, ok := value.(error); ok {
		return errors.WithStack(fmt.Errorf("panic: %w", err))
	}
	return errors.WithStack(fmt.Errorf("panic: %v", value))
}
