package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// The bars. Those for requests and writes are the same on every machine, and fail; those for times and memory do not.
const (
	requestsBar       = 2.0 // per Foo, without events
	eventsBar         = 1.0 // per Foo
	startRequestsBar  = 25
	growthBar         = 8    // writes of the status of a Memcached, however many nodes it grows to
	floorBar          = 0.75 // of the floor's rate
	unlimitedBar      = 3.0  // times the rate of the unlimited sample-controller
	stockBar          = 50.0 // times that of the stock one
	cpuBar            = 0.5  // of the CPU time of the unlimited sample-controller
	memoryBar         = 4500 // bytes of heap for each Foo
	flatBar           = 1.15 // times the CPU time of a change with the fewest Foos
	failoverBar       = 5.0  // seconds
	failoverKilledBar = 20.0 // seconds
	baselineBar       = 1.10 // times the baseline's
	mostOthers        = 0.1  // the share of the machine that others may use where times are judged
)

// atMost returns whether an interval is at most a bar. That is not judged if the bar is inside of it.
func atMost(i measure.Interval, bar float64) proof.Verdict {
	switch {
	case i.High <= bar:
		return proof.Met
	case i.Low > bar:
		return proof.Missed
	}
	return proof.NotJudged
}

// atLeast returns whether an interval is at least a bar.
func atLeast(i measure.Interval, bar float64) proof.Verdict {
	return atMost(measure.Interval{Low: -i.High, High: -i.Low}, -bar)
}

// claim makes a claim of an interval.
func claim(what, bar string, i measure.Interval, verdict proof.Verdict) proof.Claim {
	c := proof.Claim{What: what, Bar: bar, Found: i.String(), Verdict: verdict}
	if verdict == proof.NotJudged {
		c.Note = "the interval includes the bar"
	}
	return c
}

// counted makes a claim of a number of requests or writes.
func counted(what string, found, atMost int) proof.Claim {
	return proof.Claim{What: what, Bar: fmt.Sprintf("at most %d", atMost), Found: fmt.Sprint(found),
		Verdict: proof.Judge(found <= atMost)}
}

// claims compares what was found with the bars, counted ones first.
func (f *found) claims() (counts, others []proof.Claim) {
	counts = slices.Concat(f.claimRequests(), f.claimGrowths(), f.claimIdle(), f.claimRestarts(), f.claimBaselineCounts())
	others = slices.Concat(
		ifQuiet(each(f.Bursts, ofOthers.of), f.claimRates()),
		ifQuiet(each(f.Paced, ofOthers.of), f.claimStock()),
		f.claimHeap(),
		ifQuiet(each(f.Sizes, func(s *size) float64 { return s.Change.Others }), f.claimChanges()),
		ifQuiet(each(f.Failovers, func(failover *failover) float64 { return failover.Others }), f.claimFailovers()))
	return counts, others
}

// ifQuiet takes back the verdicts of claims about times if other processes used much of the machine in any round.
func ifQuiet(others []float64, claims []proof.Claim) []proof.Claim {
	if len(others) == 0 || slices.Max(others) <= mostOthers {
		return claims
	}
	for i := range claims {
		claims[i].Verdict = proof.NotJudged
		why := fmt.Sprintf("other processes used up to %.2f of the machine", slices.Max(others))
		claims[i].Note = strings.TrimPrefix(claims[i].Note+"; "+why, "; ")
	}
	return claims
}

func (f *found) claimRequests() []proof.Claim {
	var claims []proof.Claim
	for _, b := range byProgram(f.Paced)[operator.name] {
		others := b.perFoo() - float64(b.Requests["create events"])/float64(b.Converged)
		for _, of := range []struct {
			what       string
			found, bar float64
		}{{"without events", others, requestsBar}, {"with events", b.perFoo(), requestsBar + eventsBar}} {
			claims = append(claims, proof.Claim{What: "requests per Foo, " + of.what, Bar: fmt.Sprintf("at most %.0f", of.bar),
				Found: fmt.Sprintf("%.3f", of.found), Verdict: proof.Judge(of.found <= of.bar)})
		}
	}
	return claims
}

func (f *found) claimGrowths() []proof.Claim {
	if len(f.Growths) == 0 {
		return nil
	}
	most := slices.MaxFunc(f.Growths, func(a, b *growth) int { return a.StatusWrites - b.StatusWrites })
	nodes := slices.Max(each(f.Growths, func(g *growth) int { return g.Nodes }))
	return []proof.Claim{counted(fmt.Sprintf("status writes of a Memcached that grows to up to %d nodes in %s", nodes,
		ramp),
		most.StatusWrites, growthBar)}
}

func (f *found) claimIdle() []proof.Claim {
	var claims []proof.Claim
	for _, i := range f.Idle {
		if i.Program == operator.name {
			claims = append(claims, counted(fmt.Sprintf("writes in %.0f s with %d Foos, %d Memcacheds and %[3]d CronJobs at "+
				"rest, during %[4]d resyncs",
				i.Seconds, i.Foos, otherKinds, i.Resyncs), i.Writes, 0))
		}
	}
	return claims
}

// mostRequests returns the most requests of a program's restarts.
func (f *found) mostRequests(program string) int {
	return slices.Max(each(byProgram(f.Restarts)[program], func(r *restart) int { return measure.All(r.Requests) }))
}

func (f *found) claimRestarts() []proof.Claim {
	own := byProgram(f.Restarts)[operator.name]
	if len(own) == 0 {
		return nil
	}
	writes, missing := 0, 0
	for _, r := range own {
		writes, missing = max(writes, r.Writes), missing+r.Missing
	}
	requests := counted(fmt.Sprintf("requests of a restart with %d Foos", f.Scale.Restart), f.mostRequests(operator.name),
		startRequestsBar)
	requests.Note = "with watches, discovery and the first two for the lease"
	return []proof.Claim{
		counted(fmt.Sprintf("writes of a restart with %d Foos", f.Scale.Restart), writes, 0), requests,
		counted(fmt.Sprintf("new Foos that are not ready two minutes after a restart with %d", f.Scale.Restart), missing, 0),
	}
}

// claimBaselineCounts claims that this operator sends no more requests than the baseline.
func (f *found) claimBaselineCounts() []proof.Claim {
	var claims []proof.Claim
	if of := byProgram(f.Paced); len(of[baselineName]) == 1 && len(of[operator.name]) == 1 {
		own, base := of[operator.name][0].perFoo(), of[baselineName][0].perFoo()
		claims = append(claims, proof.Claim{What: "requests per Foo, beside the baseline's",
			Bar:   fmt.Sprintf("at most %.3f", base),
			Found: fmt.Sprintf("%.3f", own), Verdict: proof.Judge(own <= base)})
	}
	if of := byProgram(f.Restarts); len(of[baselineName]) > 0 && len(of[operator.name]) > 0 {
		claims = append(claims, counted("requests of a restart, beside the baseline's", f.mostRequests(operator.name),
			f.mostRequests(baselineName)))
	}
	return claims
}

func (f *found) claimRates() []proof.Claim {
	of := byProgram(f.Bursts)
	times := func(value func(*batch) float64, a, b string) measure.Interval {
		return measure.IntervalOf(measure.Ratios(each(of[a], value), each(of[b], value)))
	}
	own := operator.name
	if len(of[own]) > 0 && len(of[baselineName]) == len(of[own]) {
		cpu := times((*batch).controller, own, baselineName)
		return []proof.Claim{claim("CPU time for 1,000 Foos, times the baseline's", fmt.Sprintf("at most %.2f", baselineBar),
			cpu, atMost(cpu, baselineBar))}
	}
	if len(of[own]) == 0 || len(of[floor.name]) != len(of[own]) || len(of[unlimited.name]) != len(of[own]) {
		return nil
	}
	toFloor, toUnlimited := times((*batch).rate, own, floor.name), times((*batch).rate, own, unlimited.name)
	cpu := times((*batch).controller, own, unlimited.name)
	return []proof.Claim{
		claim("rate, as a share of the floor's", fmt.Sprintf("at least %.2f", floorBar), toFloor, atLeast(toFloor, floorBar)),
		explained(claim("rate, times the unlimited sample-controller's", fmt.Sprintf("at least %.0f", unlimitedBar),
			toUnlimited,
			atLeast(toUnlimited, unlimitedBar)),
			fmt.Sprintf("the floor's, the highest possible, is %s times that", times((*batch).rate, floor.name,
				unlimited.name))),
		explained(claim("CPU time of the controller, as a share of the unlimited sample-controller's",
			fmt.Sprintf("at most %.1f", cpuBar), cpu,
			atMost(cpu, cpuBar)),
			fmt.Sprintf("the floor's, with two writes, two watches and no caches, is %s of that",
				times((*batch).controller, floor.name, unlimited.name))),
	}
}

// explained notes why a claim is not met.
func explained(c proof.Claim, why string) proof.Claim {
	if c.Verdict == proof.Missed {
		c.Note = why
	}
	return c
}

// claimStock compares the rate with the stock sample-controller's, both when paced: in a burst, that uses its limit up
// for creations, so that hardly any Foo becomes ready.
func (f *found) claimStock() []proof.Claim {
	of := byProgram(f.Paced)
	if len(of[operator.name]) != 1 || len(of[stock.name]) != 1 {
		return nil
	}
	fast, slow := of[operator.name][0].rate(), of[stock.name][0].rate()
	return []proof.Claim{{What: "rate, times the stock sample-controller's, both when paced",
		Bar:   fmt.Sprintf("at least %.0f", stockBar),
		Found: fmt.Sprintf("%.1f", fast/slow), Verdict: proof.Judge(fast/slow >= stockBar),
		Note: fmt.Sprintf("one pair, so there is no interval: %.1f and %.2f Foos a second, with at most %d pending", fast,
			slow, paced)}}
}

func (f *found) claimHeap() []proof.Claim {
	own := f.slopes(operator.name, func(s *size) int64 { return s.Heap })
	if len(own) == 0 {
		return nil
	}
	i := measure.IntervalOf(own)
	claims := []proof.Claim{claim("bytes of heap for each Foo and its Deployment", fmt.Sprintf("at most %d", memoryBar), i,
		atMost(i, memoryBar))}
	if base := f.slopes(baselineName, func(s *size) int64 { return s.Heap }); len(base) == len(own) {
		i := measure.IntervalOf(measure.Ratios(own, base))
		claims = append(claims, claim("heap for each Foo, times the baseline's", fmt.Sprintf("at most %.2f", baselineBar), i,
			atMost(i, baselineBar)))
	}
	return claims
}

// claimChanges claims that a change costs no more CPU time with many Foos, and no more than with the baseline.
func (f *found) claimChanges() []proof.Claim {
	few, many := f.ends(operator.name)
	if len(few) == 0 || len(few) != len(many) || few[0].Foos == many[0].Foos {
		return nil
	}
	own := each(many, (*size).change)
	flat := measure.IntervalOf(measure.Ratios(own, each(few, (*size).change)))
	claims := []proof.Claim{claim(fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many[0].Foos,
		few[0].Foos),
		fmt.Sprintf("at most %.2f", flatBar), flat, atMost(flat, flatBar))}
	if _, base := f.ends(baselineName); len(base) == len(own) {
		i := measure.IntervalOf(measure.Ratios(own, each(base, (*size).change)))
		claims = append(claims, claim(fmt.Sprintf("CPU time of a change with %d Foos, times the baseline's", many[0].Foos),
			fmt.Sprintf("at most %.2f", baselineBar), i, atMost(i, baselineBar)))
	}
	return claims
}

func (f *found) claimFailovers() []proof.Claim {
	var claims []proof.Claim
	for _, s := range []struct {
		signal string
		bar    float64
		why    string // it takes that long
	}{
		{"SIGTERM", failoverBar, ""},
		{"SIGKILL", failoverKilledBar, "client-go's defaults: the lease of a killed leader expires after 15 s, and a " +
			"standby checks it every 2 to 4.4 s"},
	} {
		if gaps, _ := f.gaps(s.signal); len(gaps) > 0 {
			i := measure.RangeOf(gaps)
			claims = append(claims, explained(claim("seconds in which no Foo became ready after "+s.signal,
				fmt.Sprintf("at most %.0f, each time", s.bar), i, proof.Judge(i.High <= s.bar)), s.why))
		}
	}
	return claims
}

// ends returns what a program cost with the fewest Foos and with the most, in the order of the rounds.
func (f *found) ends(program string) (few, many []*size) {
	return f.sizesOf(program, slices.Min(f.Scale.Sizes)), f.sizesOf(program, slices.Max(f.Scale.Sizes))
}

// slopes returns how many bytes each further Foo takes, in each round.
func (f *found) slopes(program string, of func(*size) int64) []float64 {
	few, many := f.ends(program)
	if len(few) != len(many) || len(few) == 0 || few[0].Foos == many[0].Foos {
		return nil
	}
	all := make([]float64, len(few))
	for i := range few {
		all[i] = float64(of(many[i])-of(few[i])) / float64(many[i].Foos-few[i].Foos)
	}
	return all
}

func (f *found) sizesOf(program string, count int) []*size {
	return slices.DeleteFunc(slices.Clone(f.Sizes), func(s *size) bool { return s.Program != program || s.Foos != count })
}

// gaps returns how long no controller worked when the leader ended by a signal, and the share of the machine that
// others used meanwhile.
func (f *found) gaps(signal string) (gaps, others []float64) {
	for _, failover := range f.Failovers {
		if failover.Signal == signal {
			gaps, others = append(gaps, failover.Gap), append(others, failover.Others)
		}
	}
	return gaps, others
}
