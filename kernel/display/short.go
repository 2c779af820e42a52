package display

import (
	"fmt"
	"reflect"
	"strings"

	"gonbatch/internal/plural"
)

// The maximum length, in bytes, of a value's text, on its own and in a table.
const (
	textLength = 4000
	cellLength = 200
)

// The elements shown of a list with more than manyElements elements: the first ones, and the last.
const (
	manyElements = 100
	firstShown   = 6
	lastShown    = 3
)

// Short formats a value like fmt's %v, but shows only the length of a long list and its first and
// last elements, and follows pointers at the top level.
func Short(value any) string {
	if value == nil {
		return "<nil>"
	}
	return short(reflect.ValueOf(value), textLength)
}

func short(v reflect.Value, limit int) string {
	p := printer{limit: limit}
	p.value(v, 0)
	text := p.text.String()
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + " ..."
	}
	return text
}

// printer writes a value until the text is long enough.
type printer struct {
	text  strings.Builder
	limit int
}

// deepest is the maximum depth to which values are printed: a value may contain itself.
const deepest = 12

func (p *printer) value(v reflect.Value, depth int) {
	switch {
	case p.text.Len() > p.limit:
		return
	case depth > deepest:
		p.text.WriteString("...")
		return
	case v.IsValid() && v.CanInterface() && hasText(v.Type()):
		fmt.Fprint(&p.text, v.Interface()) // It reports a panic in String or Error.
		return
	}
	switch v.Kind() {
	case reflect.Invalid:
		p.text.WriteString("<nil>")
	case reflect.Interface:
		p.value(v.Elem(), depth)
	case reflect.Pointer:
		p.pointer(v, depth)
	case reflect.Slice, reflect.Array:
		p.list(v, depth)
	case reflect.Map:
		p.table(v, depth)
	case reflect.Struct:
		p.fields(v, depth)
	default:
		fmt.Fprintf(&p.text, "%v", v)
	}
}

// pointer follows a pointer at the top level; pointers within values are addresses, as in %v.
func (p *printer) pointer(v reflect.Value, depth int) {
	if depth > 0 || v.IsNil() {
		fmt.Fprintf(&p.text, "%v", v)
		return
	}
	p.text.WriteByte('&')
	p.value(v.Elem(), depth+1)
}

func (p *printer) list(v reflect.Value, depth int) {
	p.text.WriteByte('[')
	n, shown := v.Len(), v.Len()
	if n > manyElements {
		shown = firstShown
	}
	for i := range shown {
		p.separate(i)
		p.value(v.Index(i), depth+1)
	}
	if n > shown {
		p.text.WriteString(" ...")
		for i := n - lastShown; i < n; i++ {
			p.separate(i)
			p.value(v.Index(i), depth+1)
		}
		fmt.Fprintf(&p.text, "] (%d elements)", n)
		return
	}
	p.text.WriteByte(']')
}

func (p *printer) separate(i int) {
	if i > 0 {
		p.text.WriteByte(' ')
	}
}

func (p *printer) table(v reflect.Value, depth int) {
	if v.Len() <= manyElements {
		if depth == 0 && v.CanInterface() {
			fmt.Fprintf(&p.text, "%v", v) // in the order of its keys
			return
		}
	}
	fmt.Fprintf(&p.text, "map (%s)", plural.Of(v.Len(), "entry"))
}

func (p *printer) fields(v reflect.Value, depth int) {
	p.text.WriteByte('{')
	for i := range v.NumField() {
		p.separate(i)
		p.value(v.Field(i), depth+1)
	}
	p.text.WriteByte('}')
}
