package relay

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"gonbatch/internal/gocell"
)

// remedy returns what to do about a compiler message about a line of a cell; "" if nothing is
// known.
func (e *execution) remedy(message, line string) string {
	return cmp.Or(gocell.Remedy(message, line), e.declaredElsewhere(message))
}

// lineOf returns a line of the cell with GoNB's number; "" if there is none.
func (e *execution) lineOf(number, line int) string {
	code := e.code
	for _, x := range e.relay.executed {
		if number == x.count && number != e.count {
			code = x.code
		}
	}
	if lines := strings.Split(code, "\n"); line >= 1 && line <= len(lines) {
		return lines[line-1]
	}
	return ""
}

// goRemedy says what to do about a message of the go command; "" if nothing is known.
func (e *execution) goRemedy(message string) string {
	if strings.Contains(message, "build cache is required, but could not be located") {
		return "the kernel has no home folder: start Jupyter with HOME set to a folder that you may write to"
	}
	return e.flagsRemedy(message)
}

// flagsRemedy says which cell has set the flags that the go command rejects.
func (e *execution) flagsRemedy(message string) string {
	if !strings.Contains(message, "usage: go build") && !strings.Contains(message, "usage: go test") {
		return ""
	}
	for _, cell := range slices.Backward(e.relay.executed) {
		for _, call := range gocell.Parse(cell.code).Calls {
			if call.Name() == gocell.Flags {
				return fmt.Sprintf("cell [%d] line %d set these flags: %%goflags %s; correct them, or reset them with %%goflags \"\"", cell.count, call.Line, call.Rest())
			}
		}
	}
	return ""
}

// inModule matches a message about a source in the module cache.
var inModule = regexp.MustCompile(`(?m)^\S*?/pkg/mod/(\S+?)@(v[^/\s]+)/\S*\.go:\d+(?::\d+)?: `)

// moduleRemedy says what may be wrong with a module that does not compile.
func moduleRemedy(message string) string {
	found := inModule.FindStringSubmatch(message)
	if found == nil {
		return ""
	}
	path := found[1]
	if unescaped, err := module.UnescapePath(path); err == nil {
		path = unescaped
	}
	return fmt.Sprintf("%s %s does not compile: it may need an older version of a module than gonbatch does; name another version of this module: !*go get %s@VERSION", path, found[2], path)
}

// keepers excludes from %submit the cells that only keep variables that can't be kept. It returns
// the places where cells asked to keep them.
func (r *relay) keepers(names []string) (places []string) {
	for i, cell := range r.executed {
		parsed := gocell.Parse(cell.code)
		useful := parsed.FirstGo() >= 0
		for _, call := range parsed.Calls {
			change, err := call.Kept()
			if call.Name() != gocell.Keep || err != nil || !slices.ContainsFunc(change.Names, func(name string) bool { return slices.Contains(names, name) }) {
				useful = true
				continue
			}
			places = append(places, fmt.Sprintf("cell [%d] line %d", cell.count, call.Line))
			useful = useful || slices.ContainsFunc(change.Names, func(name string) bool { return !slices.Contains(names, name) })
		}
		r.executed[i].succeeded = cell.succeeded && useful
	}
	return places
}
