package submit

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	// clock matches minutes and seconds, as sbatch reads it, or hours and minutes.
	clock = regexp.MustCompile(`^[0-9]+:[0-9]+$`)
	// units matches a time with units, such as 1d12h or "2 hours 30"; the last number may lack its
	// unit.
	units = regexp.MustCompile(`^(?:([0-9.]+) *w(?:eeks?)?)? *(?:([0-9.]+) *d(?:ays?)?)? *(?:([0-9.]+) *h(?:rs?|ours?)?)? *(?:([0-9.]+) *m(?:ins?|inutes?)?)? *(?:([0-9.]+) *s(?:ecs?|econds?)?)?$`)
	// lacks matches a time whose last number lacks its unit, after the unit before.
	lacks       = regexp.MustCompile(`(w(?:eeks?)?|d(?:ays?)?|h(?:rs?|ours?)?|m(?:ins?|inutes?)?) *[0-9]+$`)
	plainNumber = regexp.MustCompile(`^[0-9]*\.[0-9]+$`)
	// amount matches an amount of memory.
	amount = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?|\.[0-9]+) *(?:([kmgt])(?:i?b)?)?$`)
)

// TimeForms are the forms of a time limit that ParseTime reads.
const TimeForms = "2h30m, 90m, 1d12h, a number of minutes, H:M:S, D-H, D-H:M, D-H:M:S or UNLIMITED"

// ParseTime returns a time limit in SLURM's notation. It refuses what people read in two ways.
func ParseTime(text string) (string, error) {
	short := strings.ToLower(strings.TrimSpace(text))
	switch {
	case short == "unlimited", short == "infinite":
		return "UNLIMITED", nil
	case clock.MatchString(short):
		first, second, _ := strings.Cut(short, ":")
		return "", fmt.Errorf("is that minutes and seconds, as batch systems read it, or hours and minutes? Give %sm%ss or %[1]sh%[2]sm", first, second)
	case timeLimit.MatchString(short):
		return short, nil
	}
	if after := lacks.FindStringSubmatch(short); after != nil {
		short += map[byte]string{'w': "d", 'd': "h", 'h': "m", 'm': "s"}[after[1][0]]
	}
	found := units.FindStringSubmatch(short)
	if found == nil || short == "" {
		if plainNumber.MatchString(short) {
			return "", fmt.Errorf("in which unit? Give %sh or %[1]sm", short)
		}
		return "", fmt.Errorf("not a time limit: give %s", TimeForms)
	}
	var total float64 // seconds
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if found[i+1] == "" {
			continue
		}
		number, err := strconv.ParseFloat(found[i+1], 64)
		if err != nil {
			return "", fmt.Errorf("%q is not a number", found[i+1])
		}
		total += number * unit.Seconds()
	}
	const most = 10 * 365 * 24 * 3600
	if total > most {
		return "", fmt.Errorf("more than ten years: give UNLIMITED, or less")
	}
	seconds := int(math.Ceil(total))
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60), nil
}

// leastPlain is the least amount of memory, in MB, that is taken without a unit: with smaller
// numbers, people mean GB.
const leastPlain = 1024

// ParseMemory returns an amount of memory in SLURM's notation: a number of megabytes, or a whole
// number with K, M, G or T. "0" is all memory. It refuses what people read in two ways.
func ParseMemory(text string) (string, error) {
	found := amount.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if found == nil {
		return "", fmt.Errorf("not an amount of memory: give a number with K, M, G or T, such as 64G")
	}
	number, err := strconv.ParseFloat(found[1], 64)
	unit := strings.ToUpper(found[2])
	switch {
	case err != nil || number >= 1<<40:
		return "", fmt.Errorf("not an amount of memory that a computer has")
	case unit == "" && number == 0:
		return "0", nil
	case unit == "" && number < leastPlain:
		return "", fmt.Errorf("in which unit? Without one, it would be MB. Give %sM or %[1]sG", found[1])
	}
	for number != math.Trunc(number) && unit != "K" {
		number, unit = number*1024, map[string]string{"T": "G", "G": "M", "M": "K", "": "K"}[unit]
	}
	return strconv.FormatFloat(math.Ceil(number), 'f', 0, 64) + unit, nil
}
