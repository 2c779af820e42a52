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

// IntVar defines a flag whose value is a decimal number: pflag's takes 010 for 8.
func IntVar(fs *pflag.FlagSet, to *int, name string, value int, usage string) {
	*to = value
	fs.Var((*intValue)(to), name, usage)
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

// Type returns the kind of text.
func (v textValue) Type() string { return v.kind }
