package relay

import (
	"context"
	"fmt"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
	"gonbatch/kernel/magic"
)

// runMagics runs this kernel's own magics in the cell, in order, until one fails.
func (e *execution) runMagics(ctx context.Context) *failure {
	if e.prepared.Err != nil {
		return nil
	}
	for _, m := range e.prepared.Magics {
		err := e.relay.opts.Magics.Run(ctx, session{e, m.Line}, m)
		switch {
		case e.relay.interrupted.Load():
			return &failure{"Interrupted", "the cell was interrupted", []string{e.title(m.Line), red + "the cell was interrupted" + plain}}
		case err != nil:
			return &failure{"MagicFailed", err.Error(), []string{e.title(m.Line), fmt.Sprintf("%%%s %s", m.Name, m.Args), red + err.Error() + plain}}
		}
	}
	return nil
}

// session is a magic's view of the kernel.
type session struct {
	e *execution
	// line is the magic's line in its cell, from 1.
	line int
}

var _ magic.Session = session{}

func (s session) Print(text string) {
	s.e.relay.front.iopub.Wait()
	s.e.print(text)
}

func (s session) Display(id string, bundle map[string]any) { s.show("display_data", id, bundle) }

func (s session) Update(id string, bundle map[string]any) { s.show("update_display_data", id, bundle) }

func (s session) show(messageType, id string, bundle map[string]any) {
	s.e.relay.front.iopub.Wait()
	s.e.relay.publish(s.e.request, messageType, object{"data": bundle, "metadata": object{}, "transient": object{"display_id": id}})
}

func (s session) Interrupted() bool { return s.e.relay.interrupted.Load() }

func (s session) Declare(imported, declaration string) (err error) {
	s.e.prepared.Code, err = cell.Declare(s.e.prepared.Code, s.line, imported, declaration)
	return err
}

// Declared returns the declarations of all cells that ran without an error, in every version of
// their text.
func (s session) Declared() []string {
	return gocell.Session(s.e.relay.sources())
}

// Current returns the cell of this execution.
func (s session) Current() magic.Cell {
	return magic.Cell{ID: cellID(s.e.request), Source: s.e.code, First: s.e.count, Last: s.e.count}
}

// Cells returns the cells that ran without an error, in their last versions. A cell is identified
// by its client's id, or by its text.
func (s session) Cells() []magic.Cell {
	var cells []magic.Cell
	at := map[string]int{}
	for _, x := range s.e.relay.executed {
		if !x.succeeded {
			continue
		}
		key := "id " + x.id
		if x.id == "" {
			key = "text " + x.code
		}
		if i, ok := at[key]; ok {
			cells[i].Source, cells[i].Last = x.code, x.count
			continue
		}
		at[key] = len(cells)
		cells = append(cells, magic.Cell{ID: x.id, Source: x.code, First: x.count, Last: x.count})
	}
	return cells
}
