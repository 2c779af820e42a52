package cell

import (
	"fmt"
	"go/token"
	"strings"
)

// KeepMagic is the magic that lets variables survive into later cells: "%keep x, y"; "%keep -d x" ends it, "%keep" lists them.
const KeepMagic = "%keep"

// KeepChange is what one %keep asks for. Without names it asks for the list.
type KeepChange struct {
	Names []string
	// Drop is set if the variables shall not be kept any longer.
	Drop bool
}

// keep reads the magic in line i, and empties the line.
func (p *Prepared) keep(lines []string, i int) error {
	words := strings.FieldsFunc(strings.TrimPrefix(trim(lines[i]), KeepMagic), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	change := KeepChange{}
	if len(words) > 0 && words[0] == "-d" {
		change.Drop, words = true, words[1:]
		if len(words) == 0 {
			return fmt.Errorf("line %d: %%keep -d needs the names of variables: %%keep -d x, y", i+1)
		}
	}
	for _, name := range words {
		if !token.IsIdentifier(name) || name == "_" {
			return fmt.Errorf("line %d: %%keep %s: not the name of a variable: %%keep x, y", i+1, name)
		}
	}
	change.Names, lines[i] = words, ""
	p.Keep = append(p.Keep, change)
	return nil
}
