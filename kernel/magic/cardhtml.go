package magic

import (
	"fmt"
	"html"
	"strings"
)

// The colors of states, readable on white and on black.
const (
	grey  = "#8a8a8a"
	blue  = "#3b82d6"
	green = "#2f9e5b"
	red   = "#d64545"
)

// The card uses the page's own color and font: it must look right in light and dark themes, and in
// any front end.
const (
	cardStyle = "box-sizing:border-box;max-width:720px;margin:4px 0;padding:8px 12px 10px;border:1px solid rgba(128,128,128,.35);border-left:4px solid %s;" +
		"border-radius:4px;font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:13px;line-height:1.5"
	preStyle   = "margin:6px 0 0;padding:6px 8px;border-radius:3px;background:rgba(128,128,128,.12);font-size:12px;line-height:1.4;overflow-x:auto;white-space:pre"
	quietStyle = "font-size:12px;opacity:.7;overflow-wrap:anywhere"
)

func (s state) color() string {
	switch {
	case s.completed():
		return green
	case s.ended():
		return red
	case s.Run.State == "running":
		return blue
	}
	return grey
}

func htmlCard(s state) string {
	parts := []string{
		fmt.Sprintf(`<div style="`+cardStyle+`">`, s.color()),
		htmlTitle(s),
		quiet(s.history()),
		htmlProgress(s),
		htmlMeasures(s.measures()),
		draw(s.Losses),
		pre(s.Run.Failure),
		pre(strings.Join(s.unsaidLog(), "\n")),
		quiet(s.Job.Dir),
		"</div>",
	}
	return strings.Join(parts, "")
}

func htmlTitle(s state) string {
	return fmt.Sprintf(`<div style="font-weight:600"><span style="color:%s">●</span> %s</div>`, s.color(), html.EscapeString(s.title()))
}

func quiet(text string) string { return element("div", quietStyle+";margin-top:4px", text) }

func pre(text string) string { return element("pre", preStyle, text) }

// element returns an HTML element with a text; "" without one.
func element(name, style, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(`<%s style="%s">%s</%[1]s>`, name, style, html.EscapeString(text))
}

// htmlProgress returns a progress bar, until the job has ended.
func htmlProgress(s state) string {
	if s.Progress.Total == 0 || s.ended() {
		return ""
	}
	return fmt.Sprintf(`<div style="height:6px;margin:6px 0 2px;border-radius:3px;background:rgba(128,128,128,.25);overflow:hidden">`+
		`<div style="height:100%%;width:%.1f%%;background:%s"></div></div><div style="%s">%s</div>`,
		100*s.Progress.part(), s.color(), quietStyle, html.EscapeString(s.caption()))
}

func htmlMeasures(all []string) string {
	if len(all) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString(`<div style="display:flex;flex-wrap:wrap;gap:2px 16px;margin-top:4px">`)
	for _, measure := range all {
		at := strings.LastIndex(measure, " ")
		fmt.Fprintf(&text, `<span style="white-space:nowrap"><span style="opacity:.7">%s</span> <b>%s</b></span>`,
			html.EscapeString(measure[:at]), html.EscapeString(measure[at+1:]))
	}
	return text.String() + "</div>"
}
