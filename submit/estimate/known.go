package estimate

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gonbatch/internal/fetch"
	"gonbatch/internal/forecast"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// Known is a folder of forecasts, so that a program's step is forecast once for each world.
type Known struct{ Dir string }

// KnownTo returns the forecasts in the user's cache folder.
func KnownTo(shell submit.Shell) (Known, error) {
	dir, err := fetch.CacheDir(shell.Getenv, "forecasts")
	return Known{Dir: dir}, err
}

// entry is what is known of a program in a world.
type entry struct {
	Forecast report.Forecast `json:"forecast"`
	// Error is why there is no forecast, and Time is how long the program had; 0 is no limit.
	Error string        `json:"error,omitempty"`
	Time  time.Duration `json:"time,omitempty"`
}

// hopeless reports whether the program has failed before, in at least as much time as it has now.
func (e entry) hopeless(now time.Duration) bool {
	return e.Error != "" && (e.Time == 0 || now != 0 && now <= e.Time)
}

// keptFor is how long a forecast is known.
const keptFor = 30 * 24 * time.Hour

// path is the file of a program's entry: its name is the hash of what determines the answer.
func (k Known) path(p Program, world forecast.World) string {
	text, _ := json.Marshal(struct {
		Program string
		Args    []string
		Env     []rundir.Var
		World   forecast.World
	}{p.Cell.SHA256, p.Cell.Args, p.env(), world})
	return filepath.Join(k.Dir, fmt.Sprintf("%.16x.json", sha256.Sum256(text)))
}

// find returns what is known.
func (k Known) find(p Program, world forecast.World) (e entry, ok bool) {
	path := k.path(p, world)
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > keptFor || rundir.ReadJSON(path, &e) != nil {
		return entry{}, false
	}
	return e, true
}

// Keep notes a forecast, or why there is none.
func (k Known) Keep(p Program, world forecast.World, r report.Forecast, failure error) error {
	if p.Cell.SHA256 == "" {
		return errors.New("a program without a hash can't be recognized")
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return err
	}
	k.sweep()
	e := entry{Forecast: r, Time: p.Time}
	if failure != nil {
		e.Error = failure.Error()
	}
	return rundir.WriteJSON(k.path(p, world), e)
}

// sweep removes what is no longer known.
func (k Known) sweep() {
	all, _ := filepath.Glob(filepath.Join(k.Dir, "*.json")) // The pattern is valid.
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > keptFor {
			_ = os.Remove(path)
		}
	}
}

// SayOnce prints why there are no forecasts, once for each reason.
func (k Known) SayOnce(shell submit.Shell, why error) {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return
	}
	said := filepath.Join(k.Dir, fmt.Sprintf("said-%.4x", sha256.Sum256([]byte(why.Error()))))
	file, err := os.OpenFile(said, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = file.Close()
	fmt.Fprintf(shell.Err, "submit: no forecast of the training step: %v (shown once; forecast: 0 turns forecasts off)\n", why)
}
