package tier

import (
	"flag"
	"slices"
	"testing"
)

// TestTiers: -short leaves out what belongs to the second tier, and only that.
func TestTiers(t *testing.T) {
	was := flag.Lookup("test.short").Value.String()
	defer set(t, was)
	for short, want := range map[string]struct {
		cases []int
		half  []int
		tries int
		ran   bool
	}{
		"true":  {[]int{1, 2}, []int{1, 4}, 3, false},
		"false": {[]int{1, 2, 4}, []int{1, 2, 4}, 30, true},
	} {
		set(t, short)
		ran := false
		t.Run("short "+short, func(t *testing.T) {
			Long(t)
			ran = true
		})
		if got := Fewer([]int{1, 2, 4}, 2); !slices.Equal(got, want.cases) || !slices.Equal(Half([]int{1, 2, 4}), want.half) || Tries(30, 3) != want.tries || ran != want.ran {
			t.Errorf("short %s: %v, %d, %v; want %+v", short, got, Tries(30, 3), ran, want)
		}
	}
	if got := Fewer([]int{1}, 5); len(got) != 1 {
		t.Errorf("%v of one case", got)
	}
}

func set(t *testing.T, short string) {
	t.Helper()
	if err := flag.Set("test.short", short); err != nil {
		t.Fatal(err)
	}
}
