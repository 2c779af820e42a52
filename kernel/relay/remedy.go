package relay

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
)

// remedies say what to do about a compiler message with a given beginning; the first match counts.
var remedies = []struct{ message, remedy string }{
	{"expected declaration, found '%'", "; a magic stands at the beginning of its line: remove the space before the %"},
	{"expected declaration, found ", "; statements need a main: put a line %% above them"},
	{"undefined: " + cell.EmbedPrefix, "; a %wasm program can't embed files of the notebook's folder"},
	{"expected statement, found 'import'", "; imports stand above the line %%"},
}

// remedy returns what to do about a compiler message; "" if nothing is known.
func (e *execution) remedy(message string) string {
	for _, r := range remedies {
		if strings.HasPrefix(message, r.message) {
			return r.remedy
		}
	}
	return e.declaredElsewhere(message)
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
				return fmt.Sprintf("cell [%d] line %d set these flags: %%goflags %s; correct it, or forget them by %%goflags \"\"", cell.count, call.Line, call.Rest())
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
	return fmt.Sprintf("%s %s does not compile: it may need an older version of a module than gonbatch does; name another version of this module: !*go get %s@VERSION, "+
		"or remove the imports of gonbatch and %%keep from the program, so that it has the versions that its own modules ask for", path, found[2], path)
}

// unkeep excludes from %submit the cells that only keep variables that can't be kept. It returns
// the places where cells asked to keep them.
func (r *relay) unkeep(names []string) (places []string) {
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
