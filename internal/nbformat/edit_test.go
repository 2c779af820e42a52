package nbformat

import (
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	nb, err := Parse("n.ipynb", []byte(goNotebook(`{"cell_type":"code","source":"a","metadata":{"x":1,"tags":["t"]},"outputs":[1]}`)))
	if err != nil {
		t.Fatal(err)
	}
	cell := nb.Cells[0]
	if err := cell.SetField("outputs", []string{"<&>"}); err != nil {
		t.Fatal(err)
	}
	if err := cell.SetMetadata("own", map[string]int{"n": 7}); err != nil {
		t.Fatal(err)
	}
	if err := nb.SetMetadata("own", "text"); err != nil {
		t.Fatal(err)
	}
	data, err := nb.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("n.ipynb", data)
	if err != nil {
		t.Fatal(err)
	}
	var own struct{ N int }
	if ok, err := back.Cells[0].GetMetadata("own", &own); !ok || err != nil || own.N != 7 {
		t.Errorf("the cell's metadata: %v %v %+v", ok, err, own)
	}
	var text string
	if ok, err := back.GetMetadata("own", &text); !ok || err != nil || text != "text" {
		t.Errorf("the notebook's metadata: %v %v %q", ok, err, text)
	}
	if ok, err := back.GetMetadata("other", &text); ok || err != nil {
		t.Errorf("metadata that is not there: %v %v", ok, err)
	}
	if ok, err := back.GetMetadata("own", &own); !ok || err == nil {
		t.Errorf("metadata of another type: %v %v", ok, err)
	}
	if got := strings.Join(strings.Fields(string(back.Cells[0].Field("outputs"))), ""); got != `["<&>"]` || !back.Cells[0].HasTag("t") {
		t.Errorf("outputs %s, tags %v", got, back.Cells[0].Tags)
	}
}
