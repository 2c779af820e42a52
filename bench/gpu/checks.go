package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// check is one, and what it does: its figures are for people.
type check struct {
	// name may have parts: cnn/torch is one of those of cnn.
	name string
	// needs is the check that must have passed before.
	needs string
	run   func(context.Context) (figures string, err error)
}

// The names of the first checks, which others need.
const opens, steps = "opens", "/step"

// checks are all of them, the most important first.
func (b *bench) checks() []check {
	// part has a process of this program's own as a rank do something.
	part := func(name string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return b.start(ctx, 1, b.self, partArg, name) }
	}
	all := []check{
		{opens, "", part(opens)},
		{"collectives", opens, part("callbacks")},
		{"sum", opens, b.sum},
		{"mock", opens, part("mock")},
	}
	all = append(all, b.network(networks[0])...)
	for _, n := range notebooks {
		all = append(all,
			check{n.check(), opens, func(ctx context.Context) (string, error) { return b.notebook(ctx, n) }},
			check{n.check() + "/resume", n.check(), func(ctx context.Context) (string, error) { return b.resume(ctx, n) }})
	}
	for _, s := range suites {
		all = append(all, check{"tests/" + s.name, opens, func(ctx context.Context) (string, error) { return b.tests(ctx, s) }})
	}
	for _, n := range networks[1:] {
		all = append(all, b.network(n)...)
	}
	return all
}

// chosen are the checks that the user wants, and those that they need.
func chosen(all []check, only string) ([]check, error) {
	if only == "" || only == "help" {
		return all, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		name, found := strings.TrimSpace(name), false
		for _, c := range all {
			if c.name == name || strings.HasPrefix(c.name, name+"/") {
				found, wanted[c.name] = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("-only %s: there is no check %q (-only help lists them)", only, name)
		}
	}
	for _, c := range slices.Backward(all) { // What a check needs comes before it.
		if wanted[c.name] && c.needs != "" {
			wanted[c.needs] = true
		}
	}
	return slices.DeleteFunc(all, func(c check) bool { return !wanted[c.name] }), nil
}

// all runs the checks while there is time, and returns how many had each result. What a check needs
// has passed, or it is skipped.
func (b *bench) all(ctx context.Context, checks []check) (count map[string]int) {
	count = map[string]int{}
	passed := map[string]bool{"": true}
	for _, c := range checks {
		began := time.Now()
		r := row{name: c.name}
		switch {
		case ctx.Err() != nil:
			r.result, r.figures = notRun, "the user has ended the checks"
		case !began.Before(b.until):
			r.result, r.figures = notRun, fmt.Sprintf("the time was over: -total %s", b.total)
		case !passed[c.needs]:
			r.result, r.figures = skip, fmt.Sprintf("it needs %s, which has not passed", c.needs)
		default:
			b.results.begin(c.name)
			r.result, r.figures = b.run(ctx, c)
			r.took = time.Since(began)
			passed[c.name] = r.result == ok
		}
		count[r.result]++
		b.results.add(r)
	}
	b.results.say("\n%s\n\n%s", b.title, b.results.table())
	return count
}

// run runs a check that may run.
func (b *bench) run(ctx context.Context, c check) (result, figures string) {
	limited, cancel := context.WithTimeout(ctx, min(b.limit, time.Until(b.until)))
	defer cancel()
	b.checking = c.name
	text, err := c.run(limited)
	switch why := skipped(""); {
	case err != nil && ctx.Err() != nil:
		return notRun, "the user has ended it while it ran"
	case err != nil && !time.Now().Before(b.until):
		return notRun, fmt.Sprintf("the time was over while it ran: -total %s", b.total)
	case errors.As(err, &why):
		return skip, err.Error()
	case err != nil:
		return failed, strings.TrimPrefix(text+": "+err.Error(), ": ")
	}
	return ok, text
}
