package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Statuses is how the cells of a notebook ended in GoNB, by number: "ok", "error", "not run", or
// "exit 1" for a program or command that failed.
type Statuses map[int]string

// statuses returns how the cells ended.
func (seen cells) statuses() Statuses {
	all := Statuses{}
	for number, cell := range seen {
		all[number] = string(cell.Status)
		if cell.Code != 0 {
			all[number] = fmt.Sprint("exit ", cell.Code)
		}
	}
	return all
}

// ok returns the numbers of the cells that are ok, sorted.
func (s Statuses) ok() (numbers []int) {
	for number, status := range s {
		if Status(status) == OK {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// cells is the inverse of statuses.
func (s Statuses) cells() cells {
	seen := cells{}
	for number, status := range s {
		cell := Cell{Number: number, Status: Status(status)}
		if _, err := fmt.Sscanf(status, "exit %d", &cell.Code); err == nil {
			cell.Status = Failed
		}
		seen[number] = cell
	}
	return seen
}

// ReadStatuses reads the recorded statuses of notebooks.
func ReadStatuses(path string) (all map[string]Statuses, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

// WriteStatuses updates a file with the statuses of some notebooks.
func WriteStatuses(path string, some map[string]Statuses) error {
	all, err := ReadStatuses(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if all == nil {
		all = map[string]Statuses{}
	}
	maps.Copy(all, some)
	return writeStatuses(path, all)
}

// KeepStatuses removes all notebooks but these from a file with statuses.
func KeepStatuses(path string, notebooks []string) error {
	all, err := ReadStatuses(path)
	if err != nil {
		return err
	}
	maps.DeleteFunc(all, func(name string, _ Statuses) bool { return !slices.Contains(notebooks, name) })
	return writeStatuses(path, all)
}

func writeStatuses(path string, all map[string]Statuses) error {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, err := json.Marshal(map[string]Statuses{name: all[name]})
		if err != nil {
			return err
		}
		lines = append(lines, string(text[1:len(text)-1]))
	}
	return os.WriteFile(path, []byte("{\n"+strings.Join(lines, ",\n")+"\n}\n"), 0o644)
}
