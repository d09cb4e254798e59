package main

import (
	"context"
	"slices"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
)

// paced is how many Foos may be under way where requests are counted: so few that nothing has to wait.
const paced = 8

// steadyShare is the share of the floor's rate that Foos come at where it is measured how long each takes.
const steadyShare = 0.5

// measurePaced counts the requests of Foos that are made no faster than they converge.
func measurePaced(ctx context.Context, p *plane, f *found) error {
	f.Paced = nil
	arms := []arm{lowest, ours, lifted}
	if f.Scale.StockTime > 0 {
		arms = append(arms, stock)
	}
	for _, a := range arms {
		b, err := p.makeBatch(ctx, a, 0, load{count: f.Scale.Paced, underWay: paced}.of(a, f.Scale.StockTime))
		if err != nil {
			return err
		}
		f.Paced = append(f.Paced, b)
	}
	return nil
}

// measureBursts measures how fast many Foos converge that are made at once, in rounds of all arms, every other one the other way round.
func measureBursts(ctx context.Context, p *plane, f *found) error {
	f.Bursts = nil
	for round := range f.Scale.Rounds {
		for _, a := range order(round, lowest, ours, lifted) {
			b, err := p.makeBatch(ctx, a, round, load{count: f.Scale.Burst})
			if err != nil {
				return err
			}
			f.Bursts = append(f.Bursts, b)
		}
	}
	for round := range max(1, f.Scale.Rounds/3) {
		b, err := p.makeBatch(ctx, stock, round, load{count: f.Scale.Burst}.of(stock, f.Scale.StockTime))
		if err != nil {
			return err
		}
		f.Bursts = append(f.Bursts, b)
	}
	return nil
}

// measureSteady measures how long Foos take that come at half the rate that the floor can do.
func measureSteady(ctx context.Context, p *plane, f *found) error {
	f.Steady = nil
	rate := steadyShare * f.floorRate()
	if rate == 0 {
		b, err := p.makeBatch(ctx, lowest, 0, load{count: f.Scale.Burst})
		if err != nil {
			return err
		}
		rate = steadyShare * b.rate()
	}
	for round := range f.Scale.Rounds {
		for _, a := range order(round, lowest, ours, lifted) {
			b, err := p.makeBatch(ctx, a, round, load{count: f.Scale.Steady, rate: rate, limit: 5 * time.Minute})
			if err != nil {
				return err
			}
			f.Steady = append(f.Steady, b)
		}
	}
	return nil
}

// floorRate returns how many Foos a second the floor has made, or 0 if that was not measured as it would be now.
func (f *found) floorRate() float64 {
	bursts := byArm(f.Bursts)[lowest.name]
	if len(bursts) == 0 || !f.has("rate") {
		return 0
	}
	return measure.Median(each(bursts, (*batch).rate))
}

// order returns arms in their order, and in every other round from the last to the first.
func order(round int, arms ...arm) []arm {
	if round%2 == 1 {
		slices.Reverse(arms)
	}
	return arms
}
