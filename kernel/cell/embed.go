package cell

import (
	"regexp"
	"strconv"
	"strings"

	"gonbatch/internal/embedded"
)

// EmbedPrefix begins the name of the function that returns a variable's embedded files: the
// variable's name follows.
const EmbedPrefix = "gonbatch__embed_"

// embed gives each variable below a //go:embed line a call as its value, with the line's patterns
// as arguments: GoNB loses the comments of variables. The build of a program defines the functions.
func (e *editor) embed(vars []embedded.Variable) {
	for _, v := range vars {
		if name := v.Spec.Names[0].Name; name != blank {
			e.replace(v.Spec.End(), v.Spec.End(), " = "+embedCall(name, v.Patterns))
		}
	}
}

func embedCall(name string, patterns []string) string {
	quoted := make([]string, len(patterns))
	for i, pattern := range patterns {
		quoted[i] = strconv.Quote(pattern)
	}
	return EmbedPrefix + name + "(" + strings.Join(quoted, ", ") + ")"
}

// addedCall matches what embed inserts, in a line.
var addedCall = regexp.MustCompile(` = ` + EmbedPrefix + `[\pL\pN_]+\((?:"(?:[^"\\]|\\.)*"(?:, )?)+\)`)
