package export

import "slices"

// mainOpener writes the main function that a %%, %main or %exec line stands for into the cell's Go.
type mainOpener struct {
	cell     *cellInfo
	code     *cellCode
	line     int  // of the magic that gave the main; 0 is none
	unclosed bool // the main goes on to the cell's end
}

// open starts a main function that ends with the cell.
func (o *mainOpener) open(line int, text string) error {
	o.unclosed = true
	return o.put(line, text)
}

// complete puts a whole main function.
func (o *mainOpener) complete(line int, text string) error { return o.put(line, text) }

// put writes text in the place of the magic's line.
func (o *mainOpener) put(line int, text string) error {
	if o.line != 0 {
		return o.cell.errorf(line, "line %d has begun the cell's main already; split the cell into two", o.line)
	}
	o.line = line
	o.code.goLines[line-1] = text
	return nil
}

// tail closes what open opened.
func (o *mainOpener) tail() string {
	if o.unclosed {
		return "}\n"
	}
	return ""
}

// onlyOpens tells whether the cell has a %% line and nothing after it; GoNB does not run such a cell.
func (o *mainOpener) onlyOpens() bool {
	if !o.unclosed {
		return false
	}
	rest := cellCode{goLines: slices.Clone(o.code.goLines)}
	rest.goLines[o.line-1] = ""
	return !rest.hasGo()
}
