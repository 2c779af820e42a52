package display

import (
	"fmt"
	"html"
	"reflect"
	"strings"
	"text/tabwriter"
)

// rows is the maximum number of rows shown of a table.
const rows = 60

// table returns a list of structs, or of pointers to them, as a table.
func table(value any) Bundle {
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array || list.Len() == 0 {
		return nil
	}
	element := list.Type().Elem()
	if element.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	columns := columnsOf(element)
	if len(columns) == 0 {
		return nil
	}
	cells := make([][]string, 0, min(list.Len(), rows)+1)
	for i := range min(list.Len(), rows) {
		cells = append(cells, row(list.Index(i), columns))
	}
	more := list.Len() - len(cells)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return Bundle{Text: textTable(names, cells, more), HTML: htmlTable(names, cells, more)}
}

// columnsOf returns the exported fields of a struct that has no text of its own.
func columnsOf(t reflect.Type) []reflect.StructField {
	if t.Kind() != reflect.Struct || hasText(t) || hasText(reflect.PointerTo(t)) {
		return nil
	}
	var columns []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && !f.Anonymous && reachable(t, f.Index) {
			columns = append(columns, f)
		}
	}
	return columns
}

// reachable reports whether a field can be reached without following a pointer, which may be nil.
func reachable(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return false
		}
	}
	return true
}

func hasText(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[fmt.Stringer]()) || t.Implements(reflect.TypeFor[error]())
}

func row(v reflect.Value, columns []reflect.StructField) []string {
	texts := make([]string, len(columns))
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return texts
		}
		v = v.Elem()
	}
	for i, c := range columns {
		texts[i] = short(v.FieldByIndex(c.Index), cellLength)
	}
	return texts
}

func textTable(names []string, cells [][]string, more int) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	oneLine := strings.NewReplacer("\n", " ", "\t", " ", "\r", " ", "\v", " ", "\f", " ")
	for _, line := range append([][]string{names}, cells...) {
		for i, cell := range line {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, oneLine.Replace(cell))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // a strings.Builder never fails
	return strings.TrimRight(text.String(), "\n") + moreRows(more)
}

func moreRows(more int) string {
	if more == 0 {
		return ""
	}
	return fmt.Sprintf("\n... %d more", more)
}

func htmlTable(names []string, cells [][]string, more int) string {
	var text strings.Builder
	text.WriteString("<table><thead><tr>")
	for _, name := range names {
		text.WriteString("<th>" + html.EscapeString(name) + "</th>")
	}
	text.WriteString("</tr></thead><tbody>")
	for _, line := range cells {
		text.WriteString("<tr>")
		for _, cell := range line {
			text.WriteString("<td>" + html.EscapeString(cell) + "</td>")
		}
		text.WriteString("</tr>")
	}
	text.WriteString("</tbody></table>" + html.EscapeString(moreRows(more)))
	return text.String()
}
