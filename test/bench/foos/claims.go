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
	requestsBar      = 2.0 // per Foo, without events
	eventsBar        = 1.0 // per Foo
	startRequestsBar = 23
	rateBar          = 3.0  // times the rate of the sample-controller
	cpuBar           = 0.5  // of the CPU time of the sample-controller
	memoryBar        = 4500 // bytes of heap for each Foo
	flatBar          = 1.15 // times the CPU time of a change with the fewest Foos
	baselineBar      = 1.10 // times the baseline's
	mostOthers       = 0.1  // the share of the machine that others may use where times are judged
)

// atMost makes a claim that an interval is at most a bar. That is not judged if the interval includes the bar.
func atMost(what string, i measure.Interval, bar float64) proof.Claim {
	return judged(what, fmt.Sprintf("at most %g", bar), i, i.High <= bar, i.Low > bar)
}

// atLeast makes a claim that an interval is at least a bar.
func atLeast(what string, i measure.Interval, bar float64) proof.Claim {
	return judged(what, fmt.Sprintf("at least %g", bar), i, i.Low >= bar, i.High < bar)
}

func judged(what, bar string, i measure.Interval, isMet, isMissed bool) proof.Claim {
	c := proof.Claim{What: what, Bar: bar, Found: i.String(), Verdict: proof.Judge(isMet)}
	if !isMet && !isMissed {
		c.Verdict, c.Note = proof.NotJudged, "the interval includes the bar"
	}
	return c
}

// counted makes a claim of a number of requests or writes.
func counted[T int | float64](what string, found, atMost T) proof.Claim {
	format := strings.TrimSuffix(fmt.Sprintf("%.3f", float64(found)), ".000")
	return proof.Claim{What: what, Bar: fmt.Sprintf("at most %v", atMost), Found: format,
		Verdict: proof.Judge(found <= atMost)}
}

// claims compares what was found with the bars, counted ones first.
func (f *found) claims() (counts, others []proof.Claim) {
	counts = slices.Concat(f.claimRequests(), f.claimIdle(), f.claimRestarts())
	others = slices.Concat(
		ifQuiet(each(f.Bursts, ofOthers.of), f.claimRates()),
		f.claimHeap(),
		ifQuiet(each(f.Sizes, func(s *size) float64 { return s.Change.Others }), f.claimChanges()))
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

// claimRequests claims that this operator sends few requests for a Foo, and no more than the baseline.
func (f *found) claimRequests() []proof.Claim {
	of := byProgram(f.Paced)
	if len(of[operator.name]) == 0 {
		return nil
	}
	own := of[operator.name][0]
	events := float64(own.Requests["create events"]) / float64(own.Foos)
	claims := []proof.Claim{counted("requests per Foo, without events", own.perFoo()-events, requestsBar),
		counted("requests per Foo, with events", own.perFoo(), requestsBar+eventsBar)}
	for _, base := range of[baselineName] {
		claims = append(claims, counted("requests per Foo, beside the baseline's", own.perFoo(), base.perFoo()))
	}
	return claims
}

func (f *found) claimIdle() []proof.Claim {
	var claims []proof.Claim
	for _, i := range f.Idle {
		if i.Program == operator.name {
			claims = append(claims, counted(fmt.Sprintf("writes in %.0f s with %d Foos at rest, during %d resyncs",
				i.Seconds, i.Foos, i.Resyncs), i.Writes, 0))
		}
	}
	return claims
}

// claimRestarts claims that a restart of this operator costs few requests, no more than one of the baseline.
func (f *found) claimRestarts() []proof.Claim {
	of := byProgram(f.Restarts)
	own, base := of[operator.name], of[baselineName]
	if len(own) == 0 {
		return nil
	}
	all := func(r *restart) int { return measure.All(r.Requests) }
	most := slices.Max(each(own, all))
	requests := counted(fmt.Sprintf("requests of a restart with %d Foos", f.Scale.Restart), most, startRequestsBar)
	requests.Note = "with watches and discovery, without those for the lease"
	claims := []proof.Claim{counted(fmt.Sprintf("writes of a restart with %d Foos", f.Scale.Restart),
		slices.Max(each(own, func(r *restart) int { return r.Writes })), 0), requests}
	if len(base) > 0 {
		claims = append(claims, counted("requests of a restart, beside the baseline's", most, slices.Max(each(base, all))))
	}
	return claims
}

// ratios returns the quotients of the results of two programs in the same rounds; none if there are no pairs.
func ratios[T any](own, other []T, of func(T) float64) (measure.Interval, bool) {
	if len(own) == 0 || len(own) != len(other) {
		return measure.Interval{}, false
	}
	return measure.IntervalOf(measure.Ratios(each(own, of), each(other, of))), true
}

func (f *found) claimRates() []proof.Claim {
	of := byProgram(f.Bursts)
	own, base, sample := of[operator.name], of[baselineName], of[sampleController.name]
	if cpu, isPaired := ratios(own, base, (*batch).controller); isPaired {
		return []proof.Claim{atMost("CPU time for 1,000 Foos, times the baseline's", cpu, baselineBar)}
	}
	rate, isPaired := ratios(own, sample, (*batch).rate)
	if !isPaired {
		return nil
	}
	cpu, _ := ratios(own, sample, (*batch).controller)
	claims := []proof.Claim{atLeast("rate, times the sample-controller's", rate, rateBar),
		atMost("CPU time of the controller, as a share of the sample-controller's", cpu, cpuBar)}
	if claims[0].Verdict == proof.Missed {
		share := func(b *batch) float64 { return 1 - b.controller()/b.system() }
		claims[0].Note = fmt.Sprintf("the API server and etcd use %.2f of the CPU time for a Foo, not the controller",
			measure.Median(each(own, share)))
	}
	return claims
}

func (f *found) claimHeap() []proof.Claim {
	own := f.slopes(operator.name, func(s *size) int64 { return s.Heap })
	base := f.slopes(baselineName, func(s *size) int64 { return s.Heap })
	if len(own) == 0 {
		return nil
	}
	claims := []proof.Claim{atMost("bytes of heap for each Foo and its Deployment", measure.IntervalOf(own), memoryBar)}
	if times, isPaired := ratios(own, base, func(bytes float64) float64 { return bytes }); isPaired {
		claims = append(claims, atMost("heap for each Foo, times the baseline's", times, baselineBar))
	}
	return claims
}

// claimChanges claims that a change costs no more CPU time with many Foos, and no more than with the baseline.
func (f *found) claimChanges() []proof.Claim {
	few, many := f.ends(operator.name)
	flat, isPaired := ratios(many, few, (*size).change)
	if !isPaired || few[0].Foos == many[0].Foos {
		return nil
	}
	claims := []proof.Claim{atMost(fmt.Sprintf("CPU time of a change with %d Foos, times that with %d", many[0].Foos,
		few[0].Foos), flat, flatBar)}
	_, base := f.ends(baselineName)
	if times, isPaired := ratios(many, base, (*size).change); isPaired {
		claims = append(claims, atMost(fmt.Sprintf("CPU time of a change with %d Foos, times the baseline's",
			many[0].Foos), times, baselineBar))
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
