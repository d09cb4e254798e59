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
	growthBar         = 8    // writes of the status of a Memcached, however many nodes it grows to
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

// mostOthers is the share of the machine's CPU time that may go to other processes where times are held against a bar.
const mostOthers = 0.1

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
	counted = slices.Concat(f.with("requests", f.claimRequests()), f.with("growth", f.claimGrowths()), f.with("idle", f.claimIdle()),
		f.with("restart", f.claimRestarts()))
	timed = slices.Concat(
		f.with("rate", ifCalm(each(f.Bursts, ofOthers.of), f.claimRates())),
		f.with("requests", ifCalm(each(f.Paced, ofOthers.of), f.claimStock())),
		f.with("sizes", f.claimHeap()),
		f.with("sizes", ifCalm(each(f.changes(), ofOthers.of), f.claimFlat())),
		f.with("failover", ifCalm(each(f.Failovers, func(failover *failover) float64 { return failover.Others }), f.claimFailovers())))
	return counted, timed
}

// with leaves the claims of a section open that was measured with another operator or benchmark than there is now.
func (f *found) with(section string, claims []proof.Claim) []proof.Claim {
	if f.has(section) {
		return claims
	}
	return leaveOpen(claims, f.differs(section))
}

// ifCalm leaves claims about times open if one of the shares of the machine's CPU time is great that others took meanwhile.
func ifCalm(others []float64, claims []proof.Claim) []proof.Claim {
	if len(others) == 0 || slices.Max(others) <= mostOthers {
		return claims
	}
	return leaveOpen(claims, fmt.Sprintf("others took up to %.2f of the machine", slices.Max(others)))
}

// leaveOpen takes the verdicts of claims back, and notes why.
func leaveOpen(claims []proof.Claim, why string) []proof.Claim {
	for i := range claims {
		claims[i].Verdict = proof.NotJudged
		claims[i].Note = strings.TrimPrefix(claims[i].Note+"; "+why, "; ")
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

func (f *found) claimGrowths() []proof.Claim {
	if len(f.Growths) == 0 {
		return nil
	}
	writes, nodes := 0, 0
	for _, g := range f.Growths {
		writes, nodes = max(writes, g.StatusWrites), max(nodes, g.Nodes)
	}
	return []proof.Claim{{What: fmt.Sprintf("status writes of a Memcached that grows to up to %d nodes in %s", nodes, ramp), Bar: fmt.Sprintf("at most %d", growthBar),
		Found: fmt.Sprint(writes), Verdict: proof.Judge(writes <= growthBar)}}
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
	own := byArm(f.Restarts)[ours.name]
	if len(own) == 0 {
		return nil
	}
	writes, requests, missing := 0, 0, 0
	for _, r := range own {
		writes, requests, missing = max(writes, r.Writes), max(requests, measure.All(r.Requests)), missing+r.Missing
	}
	foos := own[0].Foos
	return []proof.Claim{
		{What: fmt.Sprintf("writes of a restart with %d Foos", foos), Bar: "0", Found: fmt.Sprint(writes), Verdict: proof.Judge(writes == 0)},
		{What: fmt.Sprintf("requests of a restart with %d Foos", foos), Bar: fmt.Sprintf("at most %d", startRequestsBar),
			Found: fmt.Sprint(requests), Verdict: proof.Judge(requests <= startRequestsBar),
			Note: "watches, discovery and the lease's first two included"},
		{What: fmt.Sprintf("new Foos that are not made while it restarts with %d", foos), Bar: "0", Found: fmt.Sprint(missing), Verdict: proof.Judge(missing == 0)},
	}
}

func (f *found) claimRates() []proof.Claim {
	of := byArm(f.Bursts)
	if len(of[ours.name]) == 0 || len(of[lowest.name]) != len(of[ours.name]) || len(of[lifted.name]) != len(of[ours.name]) {
		return nil
	}
	times := func(value func(*batch) float64, a, b arm) measure.Interval {
		return measure.IntervalOf(measure.Ratios(each(of[a.name], value), each(of[b.name], value)))
	}
	toFloor, toLifted := times((*batch).rate, ours, lowest), times((*batch).rate, ours, lifted)
	cpu := times((*batch).controller, ours, lifted)
	return []proof.Claim{
		f.claimShare(toFloor),
		explained(claim("rate, times the unlimited sample-controller's", fmt.Sprintf("at least %.0f", liftedBar), toLifted, atLeast(toLifted, liftedBar)),
			fmt.Sprintf("the floor's, which nothing can pass, is %s times that", times((*batch).rate, lowest, lifted))),
		explained(claim("CPU time of the controller, as a share of the unlimited sample-controller's", fmt.Sprintf("at most %.1f", cpuBar), cpu, atMost(cpu, cpuBar)),
			fmt.Sprintf("the floor's program, with two writes, two watches and no caches, takes %s of that one's%s",
				times((*batch).controller, lowest, lifted), f.withoutDeciding())),
	}
}

// claimStock claims how many times the rate of the stock sample-controller the operator has, both when paced: in a burst that one uses its
// limits up for creations first, so that hardly any Foo converges.
func (f *found) claimStock() []proof.Claim {
	of := byArm(f.Paced)
	if len(of[ours.name]) != 1 || len(of[stock.name]) != 1 {
		return nil
	}
	fast, slow := of[ours.name][0].rate(), of[stock.name][0].rate()
	return []proof.Claim{{What: "rate, times the stock sample-controller's, both when paced", Bar: fmt.Sprintf("at least %.0f", stockBar),
		Found: fmt.Sprintf("%.1f", fast/slow), Verdict: proof.Judge(fast/slow >= stockBar),
		Note: fmt.Sprintf("one pair, measured once, so there is no interval: %.1f and %.2f Foos a second, with no more than %d under way", fast, slow, paced)}}
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

func (f *found) claimHeap() []proof.Claim {
	few, many := f.ends(ours)
	if len(few) == 0 || few[0].Foos == many[0].Foos {
		return nil
	}
	slope := measure.IntervalOf(slopes(few, many, func(s *size) int64 { return s.Heap }))
	return []proof.Claim{claim("bytes of heap for each Foo and its Deployment", fmt.Sprintf("at most %d", memoryBar), slope, atMost(slope, memoryBar))}
}

// claimFlat claims that a change costs no more CPU time with many Foos. Where it does, or may, the note tells what it owes to memory that is
// used anew until garbage is collected, if that is anything: with many Foos there is more of it, and it is cold.
func (f *found) claimFlat() []proof.Claim {
	few, many := f.ends(ours)
	if len(few) == 0 || few[0].Foos == many[0].Foos {
		return nil
	}
	change := measure.IntervalOf(measure.Ratios(each(many, (*size).change), each(few, (*size).change)))
	c := claim(fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many[0].Foos, few[0].Foos),
		fmt.Sprintf("at most %.2f", flatBar), change, atMost(change, flatBar))
	ratios := f.roomRatios()
	if c.Verdict == proof.Met || len(ratios) == 0 {
		return []proof.Claim{c}
	}
	if room := measure.IntervalOf(ratios); room.Low > 1 {
		c.Note = fmt.Sprintf("with %d Foos, and as much memory to use until garbage is collected as with %d, it is %s times as well: that much is not due to "+
			"the number of Foos", few[0].Foos, many[0].Foos, room)
	}
	return []proof.Claim{c}
}

// roomRatios returns the CPU time of a change with more room until the next garbage collection, as a multiple of that with the default, round
// by round.
func (f *found) roomRatios() []float64 {
	little, much := f.roomsOf()
	return measure.Ratios(each(much, (*size).change), each(little, (*size).change))
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
		why    string // it takes that long, all the same
	}{
		{"SIGTERM", failoverBar, ""},
		{"SIGKILL", failoverKilledBar, "the lease of who is killed is over 15 s after it was last seen to be renewed, and who stands by looks every 2 to 4.4 s: client-go's defaults"},
	} {
		if gaps, _ := f.gaps(s.signal); len(gaps) > 0 {
			i := measure.RangeOf(gaps)
			verdict := proof.Judge(i.High <= s.bar)
			claims = append(claims, explained(claim("seconds in which no Foo became true after "+s.signal, fmt.Sprintf("at most %.0f, each time", s.bar), i, verdict), s.why))
		}
	}
	return claims
}

// changes returns what it took to scale Foos, with each number of them, and with each room until the next garbage collection.
func (f *found) changes() []*batch {
	var changes []*batch
	for _, s := range slices.Concat(f.Sizes, f.Rooms) {
		if s.Change != nil {
			changes = append(changes, s.Change)
		}
	}
	return changes
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

// gaps returns how long nobody worked when the leader ended by a signal, and which share of the machine others took meanwhile.
func (f *found) gaps(signal string) (gaps, others []float64) {
	for _, failover := range f.Failovers {
		if failover.Signal == signal {
			gaps, others = append(gaps, failover.Gap), append(others, failover.Others)
		}
	}
	return gaps, others
}

// each returns what something is of each of many.
func each[T, R any](all []T, of func(T) R) []R {
	results := make([]R, len(all))
	for i, one := range all {
		results[i] = of(one)
	}
	return results
}

// byArm returns what was measured of each arm, in the order of the rounds.
func byArm[T interface{ armName() string }](all []T) map[string][]T {
	of := map[string][]T{}
	for _, one := range all {
		of[one.armName()] = append(of[one.armName()], one)
	}
	return of
}
