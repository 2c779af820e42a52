package display

import (
	"io"
	"reflect"
	"strings"
)

// The size of a plot, in points (1/72 inch).
const plotWidth, plotHeight = 432, 288

// drawing returns a gonum/plot value as SVG: one that has the method WriterTo(width, height
// vg.Length, format string) (io.WriterTo, error). It returns "" for other values. It looks the
// method up by a constant name, so that the linker still drops unused methods.
func drawing(value any) string {
	v := reflect.ValueOf(value)
	method := v.MethodByName("WriterTo")
	if !method.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	t := method.Type()
	if t.NumIn() != 3 || t.In(0).Kind() != reflect.Float64 || t.In(1).Kind() != reflect.Float64 || t.In(2).Kind() != reflect.String || t.NumOut() != 2 {
		return ""
	}
	out := method.Call([]reflect.Value{
		reflect.ValueOf(float64(plotWidth)).Convert(t.In(0)), reflect.ValueOf(float64(plotHeight)).Convert(t.In(1)), reflect.ValueOf("svg").Convert(t.In(2)),
	})
	writer, ok := out[0].Interface().(io.WriterTo)
	if !ok || !out[1].IsNil() {
		return ""
	}
	var text strings.Builder
	if _, err := writer.WriteTo(&text); err != nil {
		return ""
	}
	return text.String()
}
