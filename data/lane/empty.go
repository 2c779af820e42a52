package lane

import (
	"fmt"

	"gonbatch/internal/plural"
)

// emptyError says that a pass over a stream has no examples.
type emptyError struct{ pass, parts int }

func (e *emptyError) Error() string {
	if e.pass == 0 {
		return fmt.Sprintf("the stream has no examples: Read yields none in its %s", plural.Of(e.parts, "part"))
	}
	return fmt.Sprintf("the stream has no more examples: Read yields none in its %s in pass %d, counted from 0: let it yield some in each pass, or train on fewer", plural.Of(e.parts, "part"), e.pass)
}

// notEmpty returns an error unless a part has an example in a pass. It begins with the part in
// which it found the last one.
func (l *Lane) notEmpty(pass int) error {
	n := l.stream.Parts()
	for i := range n {
		part := (l.found + i) % n
		has, err := l.has(part, pass)
		if err != nil {
			return fmt.Errorf("%s: %w", Place{part, pass, 0}.In(l.stream), err)
		}
		if has {
			l.found = part
			return nil
		}
	}
	return &emptyError{pass, n}
}

// has reports whether a part has an example in a pass.
func (l *Lane) has(part, pass int) (has bool, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
	}()
	for _, err := range l.stream.Read(part, pass, 0) {
		return err == nil, err
	}
	return false, nil
}
