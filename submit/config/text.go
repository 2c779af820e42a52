package config

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// textValue is the value of a flag that must not be empty.
type textValue struct {
	to   *string
	kind string
}

// NonEmpty defines a flag whose value is a string of a kind, such as "path". It refuses an empty
// text, which nearly always comes from an unset shell variable: the flag would be ignored.
func NonEmpty(fs *pflag.FlagSet, to *string, kind, name, short, value, usage string) {
	*to = value
	fs.VarP(textValue{to, kind}, name, short, usage)
}

// ParsedVar defines a flag whose value a function parses; its errors say what is wrong with the
// text.
func ParsedVar(fs *pflag.FlagSet, to *string, parse func(string) (string, error), kind, name, short, usage string) {
	fs.VarP(parsedValue{textValue{to, kind}, parse}, name, short, usage)
}

type parsedValue struct {
	textValue
	parse func(string) (string, error)
}

// Set sets the parsed text.
func (v parsedValue) Set(text string) error {
	parsed, err := v.parse(text)
	if err != nil {
		return ValueError{Err: err}
	}
	*v.to = parsed
	return nil
}

// Check returns Set's error.
func (v parsedValue) Check(text string) error {
	return parsedValue{textValue{to: new(string)}, v.parse}.Set(text)
}

// Checker is a flag's value that can't be set back to an earlier one. Check returns the error of
// Set, and sets nothing.
type Checker interface{ Check(text string) error }

// ValueError is an error of a flag's value that says what is wrong, and what to give.
type ValueError struct{ Err error }

// Error returns the message.
func (e ValueError) Error() string { return e.Err.Error() }

// IntVarP defines a flag whose value is a decimal number: pflag's takes 010 for 8.
func IntVarP(fs *pflag.FlagSet, to *int, name, short string, value int, usage string) {
	*to = value
	fs.VarP((*intValue)(to), name, short, usage)
}

// IntVar defines such a flag without a letter.
func IntVar(fs *pflag.FlagSet, to *int, name string, value int, usage string) {
	IntVarP(fs, to, name, "", value, usage)
}

type intValue int

// String returns the number.
func (v *intValue) String() string { return strconv.Itoa(int(*v)) }

// Set sets the number.
func (v *intValue) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil {
		return errors.Unwrap(err)
	}
	*v = intValue(number)
	return nil
}

// Type returns the kind of number, as pflag's own flags do.
func (*intValue) Type() string { return "int" }

// String returns the text.
func (v textValue) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

// Set sets the text.
func (v textValue) Set(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	*v.to = text
	return nil
}

// Check returns Set's error.
func (v textValue) Check(text string) error { return textValue{to: new(string)}.Set(text) }

// Type returns the kind of text.
func (v textValue) Type() string { return v.kind }
