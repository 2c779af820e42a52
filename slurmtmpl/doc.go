// Package slurmtmpl renders the batch script of a job. The template is embedded in the program;
// JobSpec.Template names a file to use in its place. The same spec gives the same bytes.
//
//	script, err := slurmtmpl.Render(spec)
//
// A template is a text/template over Data, with the function "quote", which makes one word for the
// shell of any text. Lines of Data.Directives are complete and safe as they are; every other value
// must go through "quote".
package slurmtmpl
