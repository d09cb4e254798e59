package main

import (
	"fmt"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// The bars. Those for requests and writes are the same on every machine, and fail; those for times are told.
const (
	requestsBar       = 2.0 // per Foo, without events
	eventsBar         = 1.0 // per Foo
	startRequestsBar  = 25
	floorBar          = 0.75 // of the floor's rate
	liftedBar         = 3.0  // times the rate of the sample-controller without limits
	stockBar          = 50.0 // times that of the stock one
	cpuBar            = 0.5  // of the CPU time of the sample-controller without limits
	memoryBar         = 4500 // bytes of heap for each Foo
	flatBar           = 1.15 // times the CPU time of a change with the fewest Foos
	failoverBar       = 5.0  // seconds
	failoverKilledBar = 20.0 // seconds
)

// atMost holds an interval against a bar that it must not pass. It is met or missed if all of it is.
func atMost(i measure.Interval, bar float64) proof.Verdict {
	switch {
	case i.High <= bar:
		return proof.Met
	case i.Low > bar:
		return proof.Missed
	}
	return proof.NotJudged
}

// atLeast holds an interval against a bar that it must reach.
func atLeast(i measure.Interval, bar float64) proof.Verdict {
	return atMost(measure.Interval{Low: -i.High, High: -i.Low}, -bar)
}

const undecided = "the interval includes the bar"

// claim makes a claim of an interval.
func claim(what, bar string, i measure.Interval, verdict proof.Verdict) proof.Claim {
	c := proof.Claim{What: what, Bar: bar, Found: i.String(), Verdict: verdict}
	if verdict == proof.NotJudged {
		c.Note = undecided
	}
	return c
}

// claims holds what was found against the bars, counted ones first.
func (f *found) claims() (counted, timed []proof.Claim) {
	counted = append(f.claimRequests(), f.claimRest()...)
	timed = append(append(f.claimRates(), f.claimSizes()...), f.claimFailovers()...)
	return counted, timed
}

func (f *found) claimRequests() []proof.Claim {
	var claims []proof.Claim
	for _, b := range f.Paced {
		if b.Arm != ours.name {
			continue
		}
		events := float64(b.Requests["create events"]) / float64(b.Converged)
		others := b.perFoo() - events
		claims = append(claims,
			proof.Claim{What: "requests per Foo, events not counted", Bar: fmt.Sprintf("%.2f", requestsBar),
				Found: fmt.Sprintf("%.3f", others), Verdict: proof.Judge(others <= requestsBar)},
			proof.Claim{What: "requests per Foo, with events", Bar: fmt.Sprintf("%.2f", requestsBar+eventsBar),
				Found: fmt.Sprintf("%.3f", others+events), Verdict: proof.Judge(others+events <= requestsBar+eventsBar)})
	}
	return claims
}

func (f *found) claimRest() []proof.Claim {
	var claims []proof.Claim
	for _, i := range f.Idle {
		if i.Arm == ours.name {
			claims = append(claims, proof.Claim{What: fmt.Sprintf("writes in %.0f s with %d Foos at rest, all looked at again %d times", i.Seconds, i.Foos, i.Passes/i.Foos),
				Bar: "0", Found: fmt.Sprint(i.Writes), Verdict: proof.Judge(i.Writes == 0)})
		}
	}
	writes, requests, foos := []int{}, []int{}, 0
	for _, r := range f.Restarts {
		if r.Arm == ours.name {
			writes, requests, foos = append(writes, r.Writes), append(requests, measure.All(r.Requests)), r.Foos
		}
	}
	if len(writes) > 0 {
		most, mostRequests := slices.Max(writes), slices.Max(requests)
		claims = append(claims,
			proof.Claim{What: fmt.Sprintf("writes of a restart with %d Foos", foos), Bar: "0", Found: fmt.Sprint(most), Verdict: proof.Judge(most == 0)},
			proof.Claim{What: fmt.Sprintf("requests of a restart with %d Foos", foos), Bar: fmt.Sprintf("at most %d", startRequestsBar),
				Found: fmt.Sprint(mostRequests), Verdict: proof.Judge(mostRequests <= startRequestsBar),
				Note: "watches, discovery and the lease's first two included"})
	}
	return claims
}

func (f *found) claimRates() []proof.Claim {
	of := f.rounds()
	if len(of[ours.name]) == 0 || len(of[lowest.name]) != len(of[ours.name]) || len(of[lifted.name]) != len(of[ours.name]) {
		return nil
	}
	rates := func(a arm) []float64 { return each(of[a.name], (*batch).rate) }
	times := func(value func(*batch) float64, a, b arm) measure.Interval {
		return measure.IntervalOf(measure.Ratios(each(of[a.name], value), each(of[b.name], value)))
	}
	toFloor, toLifted := times((*batch).rate, ours, lowest), times((*batch).rate, ours, lifted)
	cpu := times((*batch).controller, ours, lifted)
	claims := []proof.Claim{
		f.claimShare(toFloor),
		explained(claim("rate, times the unlimited sample-controller's", fmt.Sprintf("at least %.0f", liftedBar), toLifted, atLeast(toLifted, liftedBar)),
			fmt.Sprintf("the floor's, which nothing can pass, is %s times that", times((*batch).rate, lowest, lifted))),
	}
	if len(of[stock.name]) > 0 {
		// Its rate is that of its limits, the same in every round, so its median stands for all.
		slow := measure.Median(rates(stock))
		var ratios []float64
		for _, rate := range rates(ours) {
			ratios = append(ratios, rate/slow)
		}
		toStock := measure.IntervalOf(ratios)
		claims = append(claims, claim("rate, times the stock sample-controller's", fmt.Sprintf("at least %.0f", stockBar), toStock, atLeast(toStock, stockBar)))
	}
	return append(claims, explained(
		claim("CPU time of the controller, as a share of the unlimited sample-controller's", fmt.Sprintf("at most %.1f", cpuBar), cpu, atMost(cpu, cpuBar)),
		fmt.Sprintf("the floor's program, which decides nothing, takes %s of it", times((*batch).controller, lowest, lifted))))
}

// claimShare claims what share of the floor's rate the operator has.
func (f *found) claimShare(share measure.Interval) proof.Claim {
	c := claim("rate, as a share of the floor's", fmt.Sprintf("at least %.2f", floorBar), share, atLeast(share, floorBar))
	if ceilings := f.ceilings(); len(ceilings) > 0 {
		return explained(c, fmt.Sprintf("with these writes, %s could be had at most: see what writes cost", measure.IntervalOf(ceilings)))
	}
	return c
}

// explained notes why a claim is not met.
func explained(c proof.Claim, why string) proof.Claim {
	if c.Verdict == proof.Missed {
		c.Note = why
	}
	return c
}

func (f *found) claimSizes() []proof.Claim {
	few, many := f.ends(ours)
	if len(few) == 0 || few[0].Foos == many[0].Foos {
		return nil
	}
	slope := measure.IntervalOf(slopes(few, many, func(s *size) int64 { return s.Heap }))
	change := measure.IntervalOf(measure.Ratios(
		eachSize(many, func(s *size) float64 { return s.Change.controller() }), eachSize(few, func(s *size) float64 { return s.Change.controller() })))
	return []proof.Claim{
		claim("bytes of heap for each Foo and its Deployment", fmt.Sprintf("at most %d", memoryBar), slope, atMost(slope, memoryBar)),
		claim(fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many[0].Foos, few[0].Foos), fmt.Sprintf("at most %.2f", flatBar), change, atMost(change, flatBar)),
	}
}

func (f *found) claimFailovers() []proof.Claim {
	var claims []proof.Claim
	for _, s := range []struct {
		signal string
		bar    float64
	}{{"SIGTERM", failoverBar}, {"SIGKILL", failoverKilledBar}} {
		if gaps := f.gaps(s.signal); len(gaps) > 0 {
			i := measure.IntervalOf(gaps)
			i.Low, i.High, i.How = slices.Min(gaps), slices.Max(gaps), "min to max" // no gap may pass the bar
			claims = append(claims, claim("seconds without a leader after "+s.signal, fmt.Sprintf("at most %.0f", s.bar), i, atMost(i, s.bar)))
		}
	}
	return claims
}

// rounds returns the bursts of each arm, in the order of the rounds.
func (f *found) rounds() map[string][]*batch {
	of := map[string][]*batch{}
	for _, b := range f.Bursts {
		of[b.Arm] = append(of[b.Arm], b)
	}
	return of
}

// ends returns what an arm took with the fewest Foos and with the most, in the order of the rounds.
func (f *found) ends(a arm) (few, many []*size) {
	least, most := slices.Min(f.Scale.Sizes), slices.Max(f.Scale.Sizes)
	for _, s := range f.Sizes {
		if s.Arm != a.name {
			continue
		}
		if s.Foos == least {
			few = append(few, s)
		}
		if s.Foos == most {
			many = append(many, s)
		}
	}
	return few, many
}

// slopes returns how many bytes there are for each Foo more.
func slopes(few, many []*size, of func(*size) int64) []float64 {
	all := make([]float64, len(few))
	for i := range few {
		all[i] = float64(of(many[i])-of(few[i])) / float64(many[i].Foos-few[i].Foos)
	}
	return all
}

func (f *found) gaps(signal string) []float64 {
	var gaps []float64
	for _, failover := range f.Failovers {
		if failover.Signal == signal {
			gaps = append(gaps, failover.Gap)
		}
	}
	return gaps
}

func each(batches []*batch, of func(*batch) float64) []float64 {
	all := make([]float64, len(batches))
	for i, b := range batches {
		all[i] = of(b)
	}
	return all
}

func eachSize(sizes []*size, of func(*size) float64) []float64 {
	all := make([]float64, len(sizes))
	for i, s := range sizes {
		all[i] = of(s)
	}
	return all
}
