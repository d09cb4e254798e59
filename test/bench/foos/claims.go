package main

import (
	"fmt"
	"slices"
	"strings"

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
	counted = slices.Concat(f.with("requests", f.claimRequests()), f.with("idle", f.claimIdle()), f.with("restart", f.claimRestarts()))
	timed = slices.Concat(f.with("rate", f.claimRates()), f.with("sizes", f.claimSizes()), f.with("failover", f.claimFailovers()))
	return counted, timed
}

// with notes on the claims of a section that they are of another operator than this one, if they are.
func (f *found) with(section string, claims []proof.Claim) []proof.Claim {
	if m, isMeasured := f.Measured[section]; isMeasured && !f.has(section) {
		for i := range claims {
			claims[i].Note = strings.TrimPrefix(claims[i].Note+"; of another operator, "+m.Operator, "; ")
		}
	}
	return claims
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

func (f *found) claimIdle() []proof.Claim {
	var claims []proof.Claim
	for _, i := range f.Idle {
		if i.Arm == ours.name {
			claims = append(claims, proof.Claim{What: fmt.Sprintf("writes in %.0f s with %d Foos, %d Memcacheds and %[3]d CronJobs at rest, all looked at again %[4]d times",
				i.Seconds, i.Foos, i.OtherKinds, i.Looks),
				Bar: "0", Found: fmt.Sprint(i.Writes), Verdict: proof.Judge(i.Writes == 0)})
		}
	}
	return claims
}

func (f *found) claimRestarts() []proof.Claim {
	var claims []proof.Claim
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
	return slices.Concat(claims, f.claimStock(of[ours.name]), []proof.Claim{explained(
		claim("CPU time of the controller, as a share of the unlimited sample-controller's", fmt.Sprintf("at most %.1f", cpuBar), cpu, atMost(cpu, cpuBar)),
		fmt.Sprintf("the floor's program, with two writes, two watches and no caches, takes %s of that one's%s",
			times((*batch).controller, lowest, lifted), f.withoutDeciding()))})
}

// claimStock claims how many times the rate of the stock sample-controller the operator has. That one's is its paced rate: in a
// burst it uses its limits up for creations first, so that hardly any Foo converges.
func (f *found) claimStock(bursts []*batch) []proof.Claim {
	i := slices.IndexFunc(f.Paced, func(b *batch) bool { return b.Arm == stock.name })
	if i < 0 {
		return nil
	}
	slow := f.Paced[i].rate()
	times := measure.IntervalOf(each(bursts, func(b *batch) float64 { return b.rate() / slow }))
	c := claim("rate, times the stock sample-controller's when paced", fmt.Sprintf("at least %.0f", stockBar), times, atLeast(times, stockBar))
	if c.Verdict == proof.Met {
		c.Note = fmt.Sprintf("that is %.2f Foos a second, with %d under way, and was measured once: its limits make it slower in a burst", slow, paced)
	}
	return f.with("requests", []proof.Claim{c})
}

// claimShare claims what share of the floor's rate the operator has.
func (f *found) claimShare(share measure.Interval) proof.Claim {
	return explained(claim("rate, as a share of the floor's", fmt.Sprintf("at least %.2f", floorBar), share, atLeast(share, floorBar)),
		fmt.Sprintf("who makes these writes and takes no time itself reaches %s", measure.IntervalOf(f.ceilings())))
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
	return []proof.Claim{
		claim("bytes of heap for each Foo and its Deployment", fmt.Sprintf("at most %d", memoryBar), slope, atMost(slope, memoryBar)),
		f.claimFlat(few, many),
	}
}

// claimFlat claims that a change costs no more CPU time with many Foos. Where it does, or may, the note tells what it owes to memory that is
// used anew until garbage is collected, if that is anything: with many Foos there is more of it, and it is cold.
func (f *found) claimFlat(few, many []*size) proof.Claim {
	change := measure.IntervalOf(measure.Ratios(eachSize(many, (*size).change), eachSize(few, (*size).change)))
	c := claim(fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many[0].Foos, few[0].Foos),
		fmt.Sprintf("at most %.2f", flatBar), change, atMost(change, flatBar))
	ratios := f.roomRatios()
	if c.Verdict == proof.Met || len(ratios) == 0 {
		return c
	}
	if room := measure.IntervalOf(ratios); room.Low > 1 {
		c.Note = fmt.Sprintf("with %d Foos, and as much memory to use until garbage is collected as with %d, it is %s times as well: that much is not due to "+
			"the number of Foos", few[0].Foos, many[0].Foos, room)
	}
	return c
}

// roomRatios returns the CPU time of a change with more room until the next garbage collection, as a multiple of that with the default, round
// by round.
func (f *found) roomRatios() []float64 {
	little, much := f.roomsOf()
	return measure.Ratios(eachSize(much, (*size).change), eachSize(little, (*size).change))
}

// roomsOf returns what was measured with the default room until the next garbage collection, and with more.
func (f *found) roomsOf() (little, much []*size) {
	for _, s := range f.Rooms {
		if s.Room == 0 {
			little = append(little, s)
		} else {
			much = append(much, s)
		}
	}
	return little, much
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
