package input

import (
	"bytes"
	_ "embed" // for the Go file
	"encoding/json"
	"go/types"
	"strconv"
	"strings"
	"unicode/utf8"

	"gonbatch/internal/rundir"
)

//go:embed parameter.go.tmpl
var runTimeSource string

// RunTimeFile is the name of the file for RunTimeSource.
const RunTimeFile = "gonbatch__parameter.go"

// runTimeCall begins the value of a parameter that a program gets when it starts.
const runTimeCall = "gonbatch__parameter["

// RunTimeSource returns the Go file that a program needs if some of its parameters get their values
// when it starts; "" if none does.
func RunTimeSource(program []byte) string {
	if !bytes.Contains(program, []byte(runTimeCall)) {
		return ""
	}
	return strings.ReplaceAll(runTimeSource, "{{variable}}", rundir.EnvParameters)
}

// atRunTime returns the Go expression of a parameter that gets its value when the program starts,
// and the value from the user in JSON. ok is false for a type whose values only the compiler reads.
func (k kind) atRunTime(name, text string) (call, value string, ok bool) {
	literal, err := k.plainLiteral(text)
	if err != nil {
		return "", "", false
	}
	basic := k.basic
	if k.duration {
		basic, literal = types.Typ[types.Int64], strings.TrimSuffix(strings.TrimPrefix(literal, "time.Duration("), ")")
	}
	if basic == nil {
		return "", "", false
	}
	switch info := basic.Info(); {
	case info&types.IsString != 0:
		data, err := json.Marshal(text)
		value, ok = string(data), err == nil && utf8.ValidString(text) // JSON has no other strings.
	case info&types.IsUnsigned != 0:
		n, err := strconv.ParseUint(literal, 0, 64)
		value, ok = strconv.FormatUint(n, 10), err == nil
	case info&types.IsInteger != 0:
		n, err := strconv.ParseInt(literal, 0, 64)
		value, ok = strconv.FormatInt(n, 10), err == nil
	case info&types.IsFloat != 0 && strings.Trim(literal, "-0.") == "":
		value, ok = "0", true // Go's -0.0 is 0, and JSON's is not.
	default:
		value, ok = literal, true // A number or a boolean, as in JSON.
	}
	call = runTimeCall + basic.Name() + "](" + strconv.Quote(name) + ")"
	if basic.Name() != k.name {
		call = k.name + "(" + call + ")"
	}
	return call, value, ok && json.Valid([]byte(value))
}
