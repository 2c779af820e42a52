// Package nbformat reads Jupyter notebooks of nbformat 4.0 to 4.5 and writes them back without
// losing a field. It does not know what the code in a cell means; submit/export does.
//
//	nb, err := nbformat.Read("mnist.ipynb")
//	if err != nil {
//		return err
//	}
//	for _, cell := range nb.Cells {
//		fmt.Println(cell.Number, cell.Type, cell.ID, cell.Tags)
//	}
package nbformat
