package display

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"image"
	"image/png"
	"io"
	"reflect"
	"strings"
)

// Bundle is a value in several formats, as a map from MIME type to content. A client shows the
// richest format that it supports. Binary formats are encoded in base64; JSON formats are values
// that encoding/json accepts.
type Bundle map[string]any

// These are the formats that Of produces.
const (
	Text   = "text/plain"
	HTML   = "text/html"
	PNG    = "image/png"
	SVG    = "image/svg+xml"
	Plotly = "application/vnd.plotly.v1+json"
)

// Bundler is a value that defines how it is shown. If its bundle lacks text/plain, the value's
// short text is added.
type Bundler interface {
	Bundle() Bundle
}

// Of returns the bundle of a value. It doesn't fail: if a value's own methods can't draw it, it is
// shown as text.
func Of(value any) Bundle {
	bundle := rich(value)
	if bundle == nil {
		bundle = Bundle{}
	}
	if _, ok := bundle[Text]; !ok {
		bundle[Text] = Short(value)
	}
	return bundle
}

// rich returns the value in formats other than text, or nil.
func rich(value any) (bundle Bundle) {
	defer func() {
		if recover() != nil { // a method of a value that is nil or incomplete
			bundle = nil
		}
	}()
	switch v := value.(type) {
	case nil:
		return nil
	case Bundler:
		return v.Bundle()
	case image.Image:
		return picture(v)
	case interface{ Render(io.Writer) error }:
		return page(v)
	}
	if svg := drawing(value); svg != "" {
		return Bundle{SVG: svg, Text: typeName(value)}
	}
	if figure := figure(value); figure != nil {
		return figure
	}
	return table(value)
}

func typeName(value any) string { return reflect.TypeOf(value).String() }

func picture(img image.Image) Bundle {
	var data bytes.Buffer
	if img.Bounds().Empty() || png.Encode(&data, img) != nil {
		return nil
	}
	size := img.Bounds().Size().String()
	return Bundle{PNG: base64.StdEncoding.EncodeToString(data.Bytes()), Text: typeName(img) + " " + size}
}

// page returns a chart of go-echarts, or any other value that renders itself as an HTML page. A
// frame isolates its scripts.
func page(chart interface{ Render(io.Writer) error }) Bundle {
	var text bytes.Buffer
	if chart.Render(&text) != nil || !strings.HasPrefix(strings.TrimSpace(text.String()), "<") {
		return nil
	}
	frame := `<iframe srcdoc="` + html.EscapeString(text.String()) + `" style="width:100%;height:540px;border:0"></iframe>`
	return Bundle{HTML: frame, Text: typeName(chart)}
}

// figure returns a plotly figure: a struct with Data, a list, and Layout, which encodes to JSON
// with these two fields.
func figure(value any) Bundle {
	v := reflect.Indirect(reflect.ValueOf(value))
	if v.Kind() != reflect.Struct || !v.FieldByName("Layout").IsValid() {
		return nil
	}
	if data := v.FieldByName("Data"); !data.IsValid() || data.Kind() != reflect.Slice {
		return nil
	}
	text, err := json.Marshal(value)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(text, &fields) != nil || fields["data"] == nil {
		return nil
	}
	return Bundle{Plotly: json.RawMessage(text), HTML: plotlyPage(text), Text: typeName(value)}
}

// plotlyPage shows a figure in clients that don't support its format.
func plotlyPage(figure []byte) string {
	// In JSON, "<" occurs only in strings, where it may be escaped like this.
	safe := strings.ReplaceAll(string(figure), "<", `\u003c`)
	frame := `<script src="https://cdn.plot.ly/plotly-2.35.2.min.js"></script><div id="p"></div><script>const f = ` + safe +
		`; Plotly.newPlot("p", f.data, f.layout)</script>`
	return `<iframe srcdoc="` + html.EscapeString(frame) + `" style="width:100%;height:480px;border:0"></iframe>`
}
