package nbformat

import (
	"cmp"
	"encoding/json"
	"strconv"
)

// OriginKey is the key of an Origin in a notebook's metadata.
const OriginKey = "gonbatch_origin"

// Origin says which notebook another one was made from. A kernel makes one from its session, and
// messages about it must name the notebook and the cells that the user sees.
type Origin struct {
	// Notebook is the file name of the user's notebook.
	Notebook string `json:"notebook"`
	// Cells are the labels of the cells in that notebook, in the order of the cells made from them:
	// a cell's number there, or its execution count in brackets if it isn't in the file.
	Cells []string `json:"cells"`
}

// decodeOrigin reads the notebook's origin, if it has one that fits its cells.
func (nb *Notebook) decodeOrigin() error {
	var of Origin
	found, err := nb.GetMetadata(OriginKey, &of)
	if err != nil || !found || len(of.Cells) != len(nb.Cells) {
		return err
	}
	nb.Origin = &of
	for i, c := range nb.Cells {
		c.Alias = of.Cells[i]
	}
	return nil
}

// DropOrigin removes the notebook's origin. Marshal writes the notebook without it.
func (nb *Notebook) DropOrigin() error {
	all := map[string]json.RawMessage{}
	if nb.Origin == nil {
		return nil
	}
	if err := json.Unmarshal(nb.fields["metadata"], &all); err != nil {
		return err
	}
	delete(all, OriginKey)
	raw, err := marshal(all)
	nb.fields["metadata"] = raw
	nb.Origin = nil
	for _, c := range nb.Cells {
		c.Alias = ""
	}
	return err
}

// Label returns what messages call the cell after the word "cell": its number, or its label in the
// notebook that this one was made from.
func (c *Cell) Label() string { return cmp.Or(c.Alias, strconv.Itoa(c.Number)) }
