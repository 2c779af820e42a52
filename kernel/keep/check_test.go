package keep

import (
	"reflect"
	"strings"
	"testing"
)

// link is an element of a linked list.
type link struct {
	Value  int
	Next   *link
	hidden int
}

// TestLongList: the time for a check grows with the length of a list, not with its square; and an
// error in it has a short path.
func TestLongList(t *testing.T) {
	const length = 100_000
	last := &link{Value: 1}
	head := last
	for range length {
		head = &link{Value: 1, Next: head}
	}
	if err := check(reflect.ValueOf(&head).Elem(), "x"); err != nil {
		t.Error(err)
	}
	last.hidden = 1
	want := "the field x.Next.Next.Next.Next...(99992 more)....Next.Next.Next.Next.hidden of keep.link is not exported"
	if err := check(reflect.ValueOf(&head).Elem(), "x"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("said %v, want %s", err, want)
	}
	last.hidden, last.Next = 0, head
	if err := check(reflect.ValueOf(&head).Elem(), "x"); err == nil || !strings.Contains(err.Error(), "contains a cycle") {
		t.Errorf("said %v, want that it contains a cycle", err)
	}
}
