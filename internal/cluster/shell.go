package cluster

import "strings"

// Shell returns the definition of a shell function, "rank", that prints the rank as Detect finds
// it, and nothing for a process that no launcher started. It sets no variable and reads no file.
func Shell() string {
	var b strings.Builder
	b.WriteString("rank() {\n")
	keyword := "if"
	for _, l := range launchers {
		b.WriteString("  " + keyword + ` [ -n "$` + l.rank + `" ] && [ -n "$` + l.with + `" ]; then echo "$` + l.rank + "\"\n")
		keyword = "elif"
	}
	b.WriteString("  fi\n}\n")
	return b.String()
}
