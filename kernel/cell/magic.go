package cell

import (
	"fmt"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/agnivade/levenshtein"
)

// AllowFail is the magic in whose cell commands may fail.
const AllowFail = "%allow_fail"

// magics are the line magics of GoNB 0.11, without their first %.
var magics = []string{
	"%", "main", "args", "test", "exec", "wasm", "widgets", "widgets_hb", "env", "cd", "goflags", "autoget", "noautoget", "help", "version",
	"reset", "ls", "list", "rm", "remove", "with_inputs", "with_password", "track", "untrack", "goworkfix", "capture",
}

// programs are the magics of GoNB that make the whole cell something else than Go. They stand in its first line.
var programs = []string{"%%writefile", "%%script", "%%bash", "%%sh", "%%gx"}

// own are the line magics of this kernel that are run here and not by GoNB.
var own = []string{"submit", "jobs", "logs", "wait", "cancel", "result"}

// Names are the magics of GoNB, with all their %.
func Names() []string {
	names := slices.Clone(programs)
	for _, name := range magics {
		names = append(names, "%"+name)
	}
	return names
}

// SubmitCell is the magic of this kernel that takes the whole cell.
const SubmitCell = "%%submit"

// Magic is a magic of this kernel in a cell.
type Magic struct {
	// Line is where it stands, from 1.
	Line int
	// Name is its name without the first %, Args the rest of its line, Body the rest of the cell for one that takes it.
	Name, Args, Body string
}

// Prepared is a cell made ready to be executed.
type Prepared struct {
	// Code is what GoNB executes: as many lines as the cell has.
	Code string
	// AllowFail is set if commands may fail.
	AllowFail bool
	// Commands are the lines, from 1, of the shell commands that are wrapped in the program status.
	Commands []int
	// Password is set if what the user types must not be seen.
	Password bool
	// Time is set if it shall be told how long the cell takes.
	Time bool
	// Ranks is how many ranks of a program shall run; 0 is an ordinary cell.
	Ranks int
	// Magics are this kernel's own, in order. Their lines are empty in Code.
	Magics []Magic
	// Keep are the changes of which variables are kept, in order.
	Keep []KeepChange
	// Err is set if the cell has a magic that nobody knows: nothing of it should run.
	Err error
}

// Prepare wraps the shell commands of a cell in the program `status`, which is called as STATUS LINE COMMAND...
func Prepare(code, status string) Prepared {
	lines := strings.Split(code, "\n")
	p := Prepared{}
	if firstWord(lines[0]) == SubmitCell {
		p.Magics = []Magic{newMagic(lines, 0)}
		p.Magics[0].Body = strings.Join(lines[1:], "\n")
		p.Code = strings.Repeat("\n", len(lines)-1)
		return p
	}
	if first := firstWord(lines[0]); isProgram(lines[0]) {
		if lines[0] = wrapProgram(trim(lines[0]), first, status); firstWord(lines[0]) == "%%script" && strings.Contains(lines[0], status) {
			p.Commands = []int{1}
		}
		p.Code = strings.Join(lines, "\n")
		return p
	}
	for i := 0; i < len(lines); i++ {
		line := trim(lines[i])
		switch {
		case len(line) < 2:
		case line[0] == '!':
			i = p.wrapCommand(lines, i, status)
		case line[0] == '%' && firstWord(line) == AllowFail:
			p.AllowFail, lines[i] = true, ""
		case firstWord(line) == "%with_inputs", firstWord(line) == "%with_password":
			// Whatever reads gets input: these only say how.
			p.Password = p.Password || firstWord(line) == "%with_password"
			lines[i] = ""
		case line[0] == '%' && firstWord(line) == KeepMagic:
			p.Err = p.keep(lines, i)
		case line[0] == '%' && slices.Contains(rewritten, firstWord(line)):
			p.Err = p.rewrite(lines, i)
		case line[0] == '%' && slices.Contains(own, firstWord(line)[1:]):
			p.Magics = append(p.Magics, newMagic(lines, i))
			for end := lastLine(lines, i); i < end; i++ {
				lines[i] = ""
			}
			lines[i] = ""
		case line[0] == '%':
			p.Err = checkMagic(line, i+1)
			i = lastLine(lines, i)
		}
		if p.Err != nil {
			break
		}
	}
	p.Code = strings.Join(lines, "\n")
	return p
}

// Empty reports whether nothing of the cell is left for GoNB.
func (p Prepared) Empty() bool { return strings.TrimSpace(p.Code) == "" }

// newMagic reads the magic that begins in line i.
func newMagic(lines []string, i int) Magic {
	name, args, _ := strings.Cut(joined(lines, i), " ")
	return Magic{Line: i + 1, Name: name[1:], Args: strings.TrimSpace(args)}
}

// joined is line i with those that its backslashes join to it.
func joined(lines []string, i int) string {
	var text strings.Builder
	for j := i; j <= lastLine(lines, i); j++ {
		line := trim(lines[j])
		if strings.HasSuffix(line, `\`) {
			line = line[:len(line)-1] + " "
		}
		text.WriteString(line)
	}
	return text.String()
}

func checkMagic(line string, number int) error {
	words := strings.Fields(line[1:])
	if len(words) == 0 || slices.Contains(magics, words[0]) {
		return nil
	}
	if slices.Contains(programs, "%"+words[0]) || "%"+words[0] == SubmitCell {
		return fmt.Errorf("line %d: %%%s must be the first line of its cell", number, words[0])
	}
	if near := nearest(words[0]); len(near) > 0 {
		return fmt.Errorf("line %d: unknown magic %%%s: did you mean %s?", number, words[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("line %d: unknown magic %%%s: %%help lists them", number, words[0])
}

// nearest are those of all magics that a misspelled one is nearest to, by at most two edits.
func nearest(name string) []string {
	const most = 2
	best, found := most+1, []string(nil)
	for _, known := range slices.Concat(Names(), ownNames()) {
		d := levenshtein.ComputeDistance("%"+name, known)
		if d >= len(name) {
			continue // nothing of it is left
		}
		if d < best {
			best, found = d, nil
		}
		if d == best && d <= most {
			found = append(found, known)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ownNames are the magics of this kernel, with all their %.
func ownNames() []string {
	names := append(slices.Clone(rewritten), KeepMagic, AllowFail, SubmitCell)
	for _, name := range own {
		names = append(names, "%"+name)
	}
	return names
}

// wrapProgram wraps the command of %%bash, %%sh or %%script. GoNB splits the line at spaces outside double quotes.
func wrapProgram(line, magic, status string) string {
	rest := strings.TrimSpace(strings.TrimPrefix(line, magic))
	switch {
	case magic == "%%script" && rest != "":
	case (magic == "%%bash" || magic == "%%sh") && rest == "":
		rest = magic[2:]
	default:
		return line
	}
	return fmt.Sprintf(`%%%%script "%s" 0 %s`, status, rest)
}

// wrapCommand wraps the shell command that begins in line i and returns the last line that belongs to it.
func (p *Prepared) wrapCommand(lines []string, i int, status string) int {
	last := lastLine(lines, i)
	command, star := strings.TrimLeft(joined(lines, i)[1:], " \t"), ""
	if rest, ok := strings.CutPrefix(command, "*"); ok {
		command, star = rest, "*"
	}
	if command == "" {
		return last
	}
	p.Commands = append(p.Commands, i+1)
	lines[i] = fmt.Sprintf("!%s%s %d /bin/bash -c %s", star, shellescape.Quote(status), i+1, shellescape.Quote(command))
	for j := i + 1; j <= last; j++ {
		lines[j] = ""
	}
	return last
}

// lastLine is the last of the lines that are joined with line i by a backslash at their ends.
func lastLine(lines []string, i int) int {
	for i < len(lines)-1 && strings.HasSuffix(trim(lines[i]), `\`) {
		i++
	}
	return i
}

// isProgram reports whether the cell that begins with a line is something else than Go.
func isProgram(line string) bool {
	return slices.Contains(programs, firstWord(line)) || firstWord(line) == SubmitCell
}

// trim drops the prefix behind which a magic may hide from Go tools.
func trim(line string) string { return strings.TrimPrefix(line, "//gonb:") }

func firstWord(line string) string {
	word, _, _ := strings.Cut(trim(line), " ")
	return word
}
