package report

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/plural"
)

// Cache is the compile cache, which keeps compiled XLA programs.
type Cache struct {
	// Folder is the cache's folder; "" if it is turned off.
	Folder string `json:"folder,omitempty"`
	// Size is the size of all programs in bytes, and Limit its maximum.
	Size     int64             `json:"size"`
	Limit    int64             `json:"limit"`
	Programs []CompiledProgram `json:"programs,omitempty"`
	// Removed is how many programs were removed just now, and Freed their size.
	Removed int   `json:"removed,omitempty"`
	Freed   int64 `json:"freed,omitempty"`
}

// CompiledProgram is a program in the cache.
type CompiledProgram struct {
	// Key is the hash of everything that determines the program, and Name is GoMLX's name for it.
	Key  string    `json:"key"`
	Name string    `json:"name,omitempty"`
	Size int64     `json:"size"`
	Used time.Time `json:"used"`
}

// NewCache reports the programs in a cache's folder, and those just removed from it.
func NewCache(folder string, programs, removed []compilecache.Program) Cache {
	c := Cache{
		Folder: folder, Limit: compilecache.Limit, Size: compilecache.Size(programs),
		Removed: len(removed), Freed: compilecache.Size(removed),
	}
	for _, p := range programs {
		c.Programs = append(c.Programs, CompiledProgram{Key: p.Key, Name: p.Name(), Size: p.Size, Used: p.Used.UTC().Truncate(time.Second)})
	}
	return c
}

// shownPrograms is how many programs the text lists.
const shownPrograms = 20

// Text writes a table of the programs used last.
func (c Cache) Text(w io.Writer) error {
	if c.Folder == "" {
		_, err := fmt.Fprintln(w, "the compile cache is turned off")
		return err
	}
	if c.Removed > 0 {
		fmt.Fprintf(w, "removed %s, %s\n", plural.Of(c.Removed, "program"), megabytes(c.Freed))
	}
	if _, err := fmt.Fprintf(w, "%s: %s, %s of at most %s\n", c.Folder, plural.Of(len(c.Programs), "program"), megabytes(c.Size), megabytes(c.Limit)); err != nil || len(c.Programs) == 0 {
		return err
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "LAST USED\tSIZE\tKEY\tPROGRAM")
	for _, p := range c.Programs[:min(len(c.Programs), shownPrograms)] {
		fmt.Fprintf(columns, "%s\t%s\t%.12s\t%s\n", p.Used.Local().Format(time.DateTime), megabytes(p.Size), p.Key, dash(p.Name))
	}
	if more := len(c.Programs) - shownPrograms; more > 0 {
		fmt.Fprintf(columns, "and %d more\n", more)
	}
	return columns.Flush()
}

// megabytes returns a number of bytes as text.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
