// Package slurmtmpl renders the batch script of a job. The template is embedded in the program;
// JobSpec.Template names a file to use instead. The same spec gives the same bytes.
//
//	script, err := slurmtmpl.Render(spec)
//
// A template is a text/template over Data. The function "quote" makes one shell word of any string,
// and "join" makes one line of names. The lines of Data.Directives are complete and safe as they
// are; pass every other value through "quote".
package slurmtmpl
