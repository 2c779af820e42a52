package submit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestParseTime: what can be read in two ways is refused.
func TestParseTime(t *testing.T) {
	for text, want := range map[string]string{
		"90": "90", "1:30:00": "1:30:00", "2-12": "2-12", "2-12:30": "2-12:30", "2w": "336:00:00", "1 week 2d": "216:00:00", "0": "0", "unlimited": "UNLIMITED", "Infinite": "UNLIMITED",
		"90m": "1:30:00", "2h30m": "2:30:00", "2h30": "2:30:00", "1d12h": "36:00:00", "1d12": "36:00:00", "2 hours 30 min": "2:30:00", "1 Day": "24:00:00",
		"1.5h": "1:30:00", "45s": "0:00:45", " 10 minutes ": "0:10:00", "0.5s": "0:00:01",
	} {
		if got, err := ParseTime(text); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"2:30": "Give 2m30s or 2h30m", "1.5": "Give 1.5h or 1.5m", "": "not a time limit", "soon": "not a time limit", "30m2h": "not a time limit", "-5m": "not a time limit",
		"1h1h": "not a time limit", "1-": "not a time limit", "5M!": "not a time limit", "1..5h": "is not a number", "99999d": "more than ten years", "1h\n": "", "30:00": "Give 30m00s or 30h00m", "inf": "not a time limit", "-1": "not a time limit", "72:00": "Give 72m00s",
	} {
		got, err := ParseTime(text)
		if want == "" && err == nil {
			continue // A shell may leave the end of a line.
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want an error with %q", text, got, err, want)
		}
	}
}

// TestParseMemory: what can be read in two ways is refused.
func TestParseMemory(t *testing.T) {
	for text, want := range map[string]string{
		"64G": "64G", "64gb": "64G", "64 GiB": "64G", "4000": "4000", "0": "0", "1.5G": "1536M", "0.5T": "512G", ".5g": "512M", "100k": "100K", "1.3K": "2K", "2048.5": "2097664K",
	} {
		if got, err := ParseMemory(text); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"64": "Give 64M or 64G", "": "not an amount of memory", "64X": "not an amount of memory", "-1G": "not an amount of memory", "64B": "not an amount of memory",
		"1e3G": "not an amount of memory", strings.Repeat("9", 400) + "G": "not an amount of memory",
	} {
		if got, err := ParseMemory(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want an error with %q", text, got, err, want)
		}
	}
}

// TestRandomAmounts: a random time in random words means that time, and parsing a parsed value
// changes nothing.
func TestRandomAmounts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := [][]string{{"w", "week", " weeks"}, {"d", "day", " days"}, {"h", "hr", " hours"}, {"m", "min", " minutes"}, {"s", "sec", " seconds"}}
	lengths := []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second}
	for range 2000 {
		var text string
		var want time.Duration
		for i, unit := range words {
			if n := random.IntN(90); random.IntN(2) == 0 {
				text += fmt.Sprint(n, unit[random.IntN(len(unit))], strings.Repeat(" ", random.IntN(2)))
				want += time.Duration(n) * lengths[i]
			}
		}
		if text == "" {
			continue
		}
		got, err := ParseTime(text)
		if err != nil || TimeLimit(got) != want {
			t.Fatalf("%q: %q, %v; want %s", text, got, err, want)
		}
		if again, err := ParseTime(got); again != got || err != nil {
			t.Fatalf("%q, parsed again: %q, %v", got, again, err)
		}
	}
}

// TestHostileValues: whatever a value of an option is, it is refused, or it is one word of one
// line.
func TestHostileValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "n[1-4]", "12", ":", "afterok", "afterok:7", ",", "?", "-", "--wrap=x", "\n", "\r", " ", "\t", "\x00", "#SBATCH", "$(id)", "`id`", "'", `"`, `\`, "é", "now+1hour", "END", "64", "G", "%", "*", ""}
	accepted := 0
	for range 1000 {
		var text string
		for range 1 + random.IntN(4) {
			text += pieces[random.IntN(len(pieces))]
		}
		for _, o := range PassedOptions {
			value, err := o.Parse(text)
			if err != nil {
				continue
			}
			spec := JobSpec{GPUs: GPUs{Count: 1}}
			spec.SetPassed(o.Name, value)
			if spec.validatePassed() != nil {
				continue
			}
			accepted++
			if strings.ContainsAny(value, "\n\r\t \x00") {
				t.Errorf("--%s=%q is accepted as %q", o.Name, text, value)
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d values are accepted", accepted)
	}
}
