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

// RunTimeFunc is the function that returns the value of a parameter that a program gets when it
// starts, and runTimeCall begins its call.
const (
	RunTimeFunc = "gonbatch__parameter"
	runTimeCall = RunTimeFunc + "["
)

// mostAtRunTime is the size of the longest value that a program gets when it starts: all of them
// are in one variable, which Linux limits to 128 KiB.
const mostAtRunTime = 4 << 10

// RunTimeSource returns the Go file that a program needs if some of its parameters get their values
// when it starts; "" if none does.
func RunTimeSource(program []byte) string {
	if !bytes.Contains(program, []byte(runTimeCall)) {
		return ""
	}
	return strings.ReplaceAll(runTimeSource, "{{variable}}", rundir.EnvParameters)
}

// atRunTime returns the Go expression of a parameter that gets its value when the program starts,
// and the value from the user in JSON. ok is false for a type whose values only the compiler reads,
// and for a long value.
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
	return call, value, ok && len(value) <= mostAtRunTime && json.Valid([]byte(value))
}
