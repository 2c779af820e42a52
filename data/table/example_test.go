package table_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gonbatch/data/table"
)

func ExampleCSV() {
	dir, err := os.MkdirTemp("", "flowers")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an example
	file := filepath.Join(dir, "iris.csv")
	text := "length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n6.3,,virginica\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	flowers, err := table.CSV(file, table.Config{
		Class: "species", Classes: []string{"setosa", "versicolor", "virginica"}, Missing: map[string]float32{"width": 3},
	})
	if err != nil {
		log.Fatal(err)
	}
	inputs, labels, err := flowers.Batch([]int{2, 0})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(flowers.Name(), flowers.Len(), flowers.Inputs())
	fmt.Println(inputs[0].Value(), labels[0].Value())
	// Output:
	// iris 3 [length width]
	// [[6.3 3] [5.1 3.5]] [[2] [0]]
}
