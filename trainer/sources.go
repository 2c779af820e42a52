package trainer

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"gonbatch/internal/nearest"
	"gonbatch/internal/yamldoc"
)

// EnvPrefix is the prefix of environment variables that configure a training run, such as
// TRAINER_MAX_EPOCHS and TRAINER_CHECKPOINT_KEEP.
const EnvPrefix = "TRAINER_"

// sources are the places besides the program's text that configure a training run.
type sources struct {
	flags *flag.FlagSet
	file  string
	given map[string]string // Values of flags, by field.
}

// AddFlags defines a flag for each field, named as in YAML ("-max_epochs 10", "-checkpoint.keep
// 3"), and "-config FILE" for a YAML file. The values in c are the defaults. Flags override
// environment variables (TRAINER_MAX_EPOCHS), which override the file, which overrides c. New
// combines them, so you can parse the flags at any time before calling it.
//
//	var config = trainer.Config{MaxEpochs: 2}
//
//	func init() { config.AddFlags(flag.CommandLine) }
func (c *Config) AddFlags(flags *flag.FlagSet) {
	s := &sources{flags: flags, given: map[string]string{}}
	c.sources = s
	flags.StringVar(&s.file, "config", "", "YAML `file` with the training's configuration")
	for name, f := range c.fields() {
		help := f.help
		if !f.value.IsZero() {
			help += fmt.Sprintf(" (here: %s)", text(f.value))
		}
		if kind := f.value.Type(); kind.Kind() == reflect.Bool || kind == reflect.TypeFor[*bool]() {
			flags.BoolFunc(name, help, func(value string) error { return s.record(c, name, value) })
			continue
		}
		flags.Func(name, help, func(value string) error { return s.record(c, name, value) })
	}
}

// afterWord returns a line for each flag after an argument that is none: package flag ignores them.
func (s *sources) afterWord() (lines []string) {
	if s.flags == nil {
		return nil
	}
	rest := s.flags.Args()
	if at := len(os.Args) - len(rest) - 1; at > 0 && os.Args[at] == "--" {
		return nil
	}
	for _, arg := range rest {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && s.flags.Lookup(name) != nil {
			lines = append(lines, fmt.Sprintf("the argument %s doesn't count: %q before it is no flag, and ends them (a flag that is true or false is written as -shuffle=false)", arg, rest[0]))
		}
	}
	return lines
}

// record checks a flag's value when it is parsed, so that package flag can name the flag in its
// error.
func (s *sources) record(c *Config, name, value string) error {
	scratch := *c
	if err := set(scratch.fields()[name].value, value); err != nil {
		return err
	}
	s.given[name] = value
	return nil
}

// resolved returns the configuration with the changes by files, the environment and flags.
func (c Config) resolved(getenv func(string) string) (Config, error) {
	s := c.sources
	if s == nil {
		s = &sources{}
	}
	file := s.file
	if file == "" {
		file = getenv(EnvPrefix + "CONFIG")
	}
	given, program := map[string]bool{}, c
	if file != "" {
		if err := c.readFile(file, given); err != nil {
			return c, err
		}
	}
	c.warnings = append(c.warnings, s.afterWord()...)
	for name, f := range c.fields() {
		variable := variableOf(name)
		if value := getenv(variable); value != "" {
			given[name] = true
			if err := set(f.value, value); err != nil {
				return c, fmt.Errorf("trainer: %s=%q: %w", variable, value, err)
			}
		}
		if value, ok := s.given[name]; ok {
			given[name] = true
			if err := set(f.value, value); err != nil {
				return c, fmt.Errorf("trainer: -%s %q: %w", name, value, err)
			}
		}
	}
	c.keepOfPhase(program, given)
	c.chosen = c.set(given)
	c.setDefaults(given)
	if err := c.check(); err != nil {
		return c, fmt.Errorf("trainer: %w", err)
	}
	return c, nil
}

// variableOf returns the environment variable of a field.
func variableOf(name string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// misspelled returns a line for each variable whose name is nearly that of a field's.
func (c *Config) misspelled(environ []string) (lines []string) {
	known := []string{variableOf("config")}
	for name := range c.fields() {
		known = append(known, variableOf(name))
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, EnvPrefix) || slices.Contains(known, name) {
			continue
		}
		if near := nearest.Words(name, known); len(near) > 0 {
			lines = append(lines, fmt.Sprintf("the variable %s sets nothing; is %s meant?", name, strings.Join(near, " or ")))
		}
	}
	return lines
}

// keepOfPhase restores what the program has changed for this phase.
func (c *Config) keepOfPhase(program Config, given map[string]bool) {
	fields, own := c.fields(), program.fields()
	for _, name := range slices.Sorted(maps.Keys(c.ofPhase)) {
		if value := fields[name].value; given[name] && !reflect.DeepEqual(value.Interface(), own[name].value.Interface()) {
			c.warnings = append(c.warnings, fmt.Sprintf("%s: the program sets %s for this phase; %s, of a flag, the environment or a file, is for the phases before", name, orNone(text(own[name].value)), orNone(text(value))))
			value.Set(own[name].value)
			delete(given, name)
		}
	}
}

// set returns which fields have a value: a source has given it, or the program.
func (c *Config) set(given map[string]bool) map[string]bool {
	chosen := map[string]bool{}
	for name, f := range c.fields() {
		chosen[name] = given[name] || !f.value.IsZero()
	}
	return chosen
}

// readFile reads a YAML file, and records the fields that it contains.
func (c *Config) readFile(path string, given map[string]bool) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("trainer: configuration: %w", err)
	}
	var tree map[string]yaml.Node
	fields := c.fields()
	err = cmp.Or(yamldoc.Single(content), yamldoc.Misspelled(content, slices.Collect(maps.Keys(fields))), yaml.Unmarshal(content, &tree))
	if err == nil {
		err = readTree(tree, "", fields, given)
	}
	if err != nil {
		return fmt.Errorf("trainer: configuration %s: %w", path, err)
	}
	return nil
}

// readTree sets the fields that a tree contains, as flags with the same texts would.
func readTree(tree map[string]yaml.Node, prefix string, fields map[string]field, given map[string]bool) error {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		node := tree[key]
		name, value := prefix+key, resolved(&node)
		var err error
		switch f, known := fields[name]; {
		case value.Tag == "!!null":
		case known:
			given[name] = true
			err = setNode(f.value, value)
		case value.Kind == yaml.MappingNode:
			var below map[string]yaml.Node
			if err = value.Decode(&below); err == nil {
				if err := readTree(below, name+".", fields, given); err != nil {
					return err // It names the line.
				}
			}
		case slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(other string) bool { return strings.HasPrefix(other, name+".") }):
			err = fmt.Errorf("%s: it is a group of settings: write %s: {NAME: VALUE}", value.Value, key)
		default:
			err = errors.New("there is no such setting")
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, name, err)
		}
	}
	return nil
}

// resolved returns the value for which a node may be an alias.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// setNode sets a field to a value of a file.
func setNode(field reflect.Value, value *yaml.Node) error {
	texts, isList := []string{value.Value}, value.Kind == yaml.SequenceNode
	switch {
	case value.Kind == yaml.MappingNode:
		return errors.New("it has no settings of its own: write one value")
	case isList && field.Kind() != reflect.Slice:
		return errors.New("it is a list: write one value")
	case !isList && field.Kind() == reflect.Slice:
		return fmt.Errorf("%s: it must be a list: [%s]", value.Value, value.Value)
	case isList:
		texts = nil
		for _, one := range value.Content {
			if one = resolved(one); one.Kind != yaml.ScalarNode || one.Tag == "!!null" {
				return fmt.Errorf("the element on line %d is no single value", one.Line)
			}
			texts = append(texts, one.Value)
		}
	}
	text := strings.Join(texts, ",")
	if err := set(field, text); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

type field struct {
	value reflect.Value
	help  string
}

// fields returns the configuration's leaves by their names: "max_epochs", "checkpoint.keep".
func (c *Config) fields() map[string]field {
	all := map[string]field{}
	collect(reflect.ValueOf(c).Elem(), "", all)
	return all
}

func collect(v reflect.Value, prefix string, into map[string]field) {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == "" {
			continue
		}
		if v.Field(i).Kind() == reflect.Struct {
			collect(v.Field(i), prefix+name+".", into)
			continue
		}
		into[prefix+name] = field{v.Field(i), v.Type().Field(i).Tag.Get("help")}
	}
}

// baseOf returns the base of a whole number, for package strconv: 010 is ten.
func baseOf(value string) int {
	if strings.Trim(value, "+-0123456789") == "" {
		return 10
	}
	return 0 // By its prefix.
}

// wholeNumber parses a whole number, also one such as 1e6.
func wholeNumber(value string) (int, error) {
	if n, err := strconv.ParseInt(value, baseOf(value), 0); err == nil {
		return int(n), nil
	}
	const exact = 1 << 53
	if x, err := strconv.ParseFloat(value, 64); err == nil && x == math.Trunc(x) && math.Abs(x) <= exact {
		return int(x), nil
	}
	return 0, errors.New("it is not a whole number")
}

// parseBool also knows YAML's older words.
func parseBool(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "y", "yes", "on":
		return true, nil
	case "n", "no", "off":
		return false, nil
	}
	return strconv.ParseBool(value)
}

// set parses a value as users write it, with commas in a list.
func set(v reflect.Value, value string) error {
	if v.Kind() == reflect.Pointer { // To a value that may be missing, or that isn't zero by default.
		own := reflect.New(v.Type().Elem())
		err := set(own.Elem(), value)
		if err == nil {
			v.Set(own)
		}
		return err
	}
	switch target := v.Addr().Interface().(type) {
	case *string:
		*target = value
	case *[]string:
		*target = split(value)
	case *[]int:
		*target = nil
		for _, part := range split(value) {
			n, err := wholeNumber(part)
			if err != nil {
				return fmt.Errorf("%q is not a whole number", part)
			}
			*target = append(*target, n)
		}
	case *time.Duration:
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("it is not a time such as 90s, 30m or 1h30m")
		}
		*target = d
	case *int:
		n, err := wholeNumber(value)
		if err != nil {
			return err
		}
		*target = n
	case *uint64:
		n, err := strconv.ParseUint(value, baseOf(value), 64)
		if err != nil {
			whole, wholeErr := wholeNumber(value) // It may be 1e9.
			if wholeErr != nil || whole < 0 {
				return fmt.Errorf("it is not a whole number of at least 0")
			}
			n = uint64(whole)
		}
		*target = n
	case *float64:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("it is not a number")
		}
		*target = x
	case *bool:
		b, err := parseBool(value)
		if err != nil {
			return fmt.Errorf("it is neither true nor false")
		}
		*target = b
	default:
		return fmt.Errorf("a field of type %s can't be set from text", v.Type())
	}
	return nil
}

func split(list string) []string {
	parts := []string{} // Not nil: an empty list differs from a missing one.
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// text formats a value so that set can parse it; a missing one is empty.
func text(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(v.Interface()), "[]"), " ", ",")
	}
	return fmt.Sprint(v.Interface())
}
