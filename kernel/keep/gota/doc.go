// Package gota lets %keep carry the data frames of github.com/go-gota/gota from one cell to the
// next: variables of type dataframe.DataFrame and series.Series, and pointers to these. The kernel
// and the export import it into programs that use gota; you don't need to import it yourself.
//
//	import _ "gonbatch/kernel/keep/gota"
package gota
