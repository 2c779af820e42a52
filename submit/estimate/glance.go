package estimate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gonbatch/internal/forecast"
	"gonbatch/submit"
	"gonbatch/submit/report"
)

// ErrSilent is why there is no forecast if the user does not need to know: nobody wants to wait for
// one, or the reason was given before.
var ErrSilent = errors.New("no forecast is known")

// Glance forecasts the step of a job that is queued already, in the time that the program has. The
// forecast is one that is known, or is known from then on; unless the user waits, nothing runs. The
// largest batch may be missing where the step does not fit. The program is quiet, and has the
// lowest priority. A program that has failed runs again only if it has more time.
func (k Known) Glance(ctx context.Context, shell submit.Shell, p Program, world forecast.World, wait bool) (report.Forecast, error) {
	e, known := k.find(p, world)
	switch {
	case known && e.Error == "":
		return e.Forecast, nil
	case e.hopeless(p.Time) || !wait:
		return report.Forecast{}, ErrSilent
	}
	limited, end := p.limited(ctx)
	defer end()
	shell.Err, p.background = io.Discard, true
	r, err := Ask(limited, shell, p, world)
	if r.Unsearched {
		err = nil
	}
	if ctx.Err() != nil {
		return r, ErrSilent
	}
	if keepErr := k.Keep(p, world, r, err); keepErr != nil && err == nil {
		err = fmt.Errorf("keep the forecast: %w", keepErr)
	}
	return r, err
}
