// Package table reads examples from tables, such as CSV files: a row is an example, and its columns
// are numbers, or the names of classes.
//
//	houses, err := table.CSV("houses-*.csv", table.Config{Labels: []string{"price"}})
//	flowers, err := table.CSV("iris.csv", table.Config{Class: "species", Classes: []string{"setosa", "versicolor", "virginica"}})
//
// The files are read once, and checked to the last row. Their numbers are kept in memory, or in a
// file if they are many; see files.Keep. So tables may be larger than the memory, and a row is read
// by its number, as from any other data.Dataset.
//
// StreamCSV doesn't read them first: it reads tables from beginning to end while the training uses
// them, as often as it needs them.
//
// Package data/table/parquet reads Parquet files. Text is not supported, except for classes.
package table
