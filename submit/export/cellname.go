package export

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// reservedNames are folder names with a special meaning for the go command.
var reservedNames = map[string]bool{"vendor": true, "internal": true, "testdata": true, "all": true, "std": true, "cmd": true}

// validName matches a cell's name, which becomes the name of a folder and a program.
var validName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)

// slugLimit is the maximum length of a name made from a heading.
const slugLimit = 40

// namer gives every main cell a unique name.
type namer struct {
	cells []*nbcell.Cell
	taken map[string]bool
}

// name returns the cell's first tag that is a valid name, else a slug of the heading above it, else
// cell- and the cell's label.
func (n *namer) name(cell *nbcell.Cell) string {
	base := tagName(cell.Tags)
	if base == "" {
		base = slug(cell.Ref.Heading)
	}
	if base == "" {
		base = "cell-" + n.label(cell)
	}
	return n.unique(base)
}

// label returns the cell's label for a name: 4, or run-4 for [4] if the notebook has a cell 4 too.
func (n *namer) label(cell *nbcell.Cell) string {
	label := strings.Trim(cell.Label(), "[]")
	if label != cell.Label() && slices.ContainsFunc(n.cells, func(c *nbcell.Cell) bool { return c.Label() == label }) {
		return "run-" + label
	}
	return label
}

// unique returns base, or base with the first number that makes the name unique.
func (n *namer) unique(base string) string {
	name := base
	for i := 2; n.taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	n.taken[strings.ToLower(name)] = true
	return name
}

// tagName returns the first tag that is a valid name.
func tagName(tags []string) string {
	for _, tag := range tags {
		if isName(tag) && !nbcell.IsReserved(tag) {
			return tag
		}
	}
	return ""
}

// isName reports whether a cell can have the name. It excludes names such as v2: the go command
// would name the program in such a folder after the parent folder. And it excludes names such as
// aux, which no module can have, because Windows cannot.
func isName(name string) bool {
	return validName.MatchString(name) && !reservedNames[strings.ToLower(name)] && !gocell.IsVersion(name) && module.CheckImportPath(name) == nil
}

// slug makes a name from a heading; "" if the heading has no letters or digits.
func slug(heading string) string {
	words := strings.FieldsFunc(strings.ToLower(heading), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	text := strings.Join(words, "-")
	if len(text) > slugLimit {
		text = strings.TrimRight(text[:slugLimit], "-")
	}
	if !isName(text) {
		return ""
	}
	return text
}
