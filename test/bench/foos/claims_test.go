package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

func TestWhatFailsAndWhatIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*found)
		isError bool
	}{
		"a request too many per Foo":                          {func(f *found) { f.Paced[0].Requests["patch foos/status"]++ }, true},
		"an event too many per Foo":                           {func(f *found) { f.Paced[0].Requests["create events"]++ }, true},
		"a status too many of a Memcached that grows":         {func(f *found) { f.Growths[0].StatusWrites = 9 }, true},
		"a new Foo that a restart does not make":              {func(f *found) { f.Restarts[0].Missing = 1 }, true},
		"a write at rest":                                     {func(f *found) { f.Idle[0].Writes = 1 }, true},
		"a write of a restart":                                {func(f *found) { f.Restarts[0].Writes = 1 }, true},
		"requests of a restart":                               {func(f *found) { f.Restarts[0].Requests["list foos"] = 25 }, true},
		"half the rate":                                       {func(f *found) { f.Bursts[1].Seconds, f.Bursts[4].Seconds = 9, 9 }, false},
		"a stock sample-controller that is faster when paced": {func(f *found) { f.Paced[1].Seconds = 25 }, false},
		"much CPU time":                                       {func(f *found) { f.Bursts[1].CPU[controllerProcess], f.Bursts[4].CPU[controllerProcess] = 9, 9 }, false},
		"a change that costs more": {func(f *found) {
			f.Sizes[1].Change.CPU[controllerProcess], f.Sizes[3].Change.CPU[controllerProcess] = 1, 1
		}, false},
		"much memory":                     {func(f *found) { f.Sizes[1].Heap, f.Sizes[3].Heap = 1e9, 1e9 }, false},
		"a long failover":                 {func(f *found) { f.Failovers[0].Gap = 6 }, false},
		"a long failover after a killing": {func(f *found) { f.Failovers[1].Gap = 21 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := everything()
			test.change(f)
			var out strings.Builder
			err := f.report(&out, "")
			if !strings.Contains(out.String(), string(proof.Missed)) {
				t.Errorf("no bar is missed:\n%s", out.String())
			}
			if (err != nil) != test.isError {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// What is missed because of what is written is told with how much could be had: by all the CPU time of the bursts, but for the operator's own.
func TestShareOfTheFloorIsExplained(t *testing.T) {
	f := everything()
	for round := range 2 {
		floor, own := f.Bursts[3*round], f.Bursts[3*round+1]
		own.Seconds = 9
		floor.CPU = map[string]float64{controllerProcess: 0.1, apiServer: 3, etcd: 1, harness: 1.9}
		own.CPU = map[string]float64{controllerProcess: 1, apiServer: 6, etcd: 1, harness: 3}
	}
	const ceiling = "0.60 (0.60 to 0.60"
	var out strings.Builder
	if err := f.report(&out, ""); err != nil || !strings.Contains(out.String(), "takes no time itself reaches "+ceiling) {
		t.Errorf("%v\n%s", err, out.String())
	}
	section := f.pricesSection()
	if text := strings.Join(section.Text, " "); !strings.Contains(text, ceiling) {
		t.Errorf("the section has another share: %s", text)
	}
	rows := section.Tables[0].Rows
	if got := strings.Join(rows[len(rows)-1][1:], " "); got != "40.00 70.00" {
		t.Errorf("the control plane takes %s ms for a Foo of the bursts", got)
	}
	f.Bursts = nil
	if text := strings.Join(f.pricesSection().Text, " "); strings.Contains(text, "share") {
		t.Errorf("without bursts, nobody knows what could be had: %s", text)
	}
}

// What is missed in CPU time is told with what a program takes that does next to nothing.
func TestCPUTimeIsExplained(t *testing.T) {
	f := everything()
	f.Bursts[1].CPU[controllerProcess], f.Bursts[4].CPU[controllerProcess] = 2, 2
	claims := f.claimRates()
	c := claims[len(claims)-1]
	if c.Verdict != proof.Missed || !strings.HasPrefix(c.Found, "0.67 ") || !strings.Contains(c.Note, "takes 0.03 (0.03 to 0.03, min to max of 2) of that one's") {
		t.Errorf("%+v", c)
	}
}

func TestIntervalsAgainstBars(t *testing.T) {
	for _, test := range []struct {
		low, high       float64
		atMost, atLeast proof.Verdict
	}{{1, 2, proof.Met, proof.Missed}, {3, 4, proof.NotJudged, proof.Met}, {4, 5, proof.Missed, proof.Met}, {2, 4, proof.NotJudged, proof.NotJudged}} {
		i := measure.Interval{Low: test.low, High: test.high}
		if got := atMost(i, 3); got != test.atMost {
			t.Errorf("%v to %v is at most 3: %s", test.low, test.high, got)
		}
		if got := atLeast(i, 3); got != test.atLeast {
			t.Errorf("%v to %v is at least 3: %s", test.low, test.high, got)
		}
	}
}

// The stock sample-controller is held to its rate when paced, beside this operator's when paced, and to nothing if that was not measured.
func TestRateOfTheStockOne(t *testing.T) {
	f := everything()
	claims := f.claimStock()
	if len(claims) != 1 || claims[0].Found != "100.0" || claims[0].Verdict != proof.Met || !strings.Contains(claims[0].Note, "one pair, measured once, so there is no interval: 100.0 and 1.00 Foos a second") {
		t.Errorf("paced, it makes a Foo a second, and this operator 100: %+v", claims)
	}
	f.Paced = f.Paced[:1]
	if claims := f.claimStock(); len(claims) != 0 {
		t.Errorf("it was not measured when paced, and yet: %+v", claims)
	}
}

// No gap may pass the bar, however short the others are; why it takes so long after a killing is explained.
func TestEachFailoverCounts(t *testing.T) {
	f := everything()
	f.Failovers = append(f.Failovers, &failover{Signal: "SIGKILL", Gap: failoverKilledBar + 0.1})
	for _, claim := range f.claimFailovers() {
		isKilled := strings.Contains(claim.What, "SIGKILL")
		if isMissed := claim.Verdict == proof.Missed; isMissed != isKilled || strings.Contains(claim.Note, "15 s") != isKilled {
			t.Errorf("%+v", claim)
		}
	}
}

// Where others took much of the machine, what takes time is not judged, and all else is.
func TestOthersLeaveTimesOpen(t *testing.T) {
	for name, test := range map[string]struct {
		of    func(*found) *float64
		timed []string
	}{
		"a burst":    {func(f *found) *float64 { return &f.Bursts[3].Others }, []string{"share of the floor's", "unlimited"}},
		"paced":      {func(f *found) *float64 { return &f.Paced[1].Others }, []string{"stock"}},
		"a change":   {func(f *found) *float64 { return &f.Sizes[2].Change.Others }, []string{"CPU time of a change"}},
		"a room":     {func(f *found) *float64 { return &f.Rooms[0].Change.Others }, []string{"CPU time of a change"}},
		"a failover": {func(f *found) *float64 { return &f.Failovers[0].Others }, []string{"seconds in which no Foo became true"}},
	} {
		for _, others := range []float64{0.1, 0.23} {
			f := everything()
			*test.of(f) = others
			counted, timed := f.claims()
			for _, claim := range append(counted, timed...) {
				isTimed := slices.ContainsFunc(test.timed, func(part string) bool { return strings.Contains(claim.What, part) })
				isOpen := claim.Verdict == proof.NotJudged && strings.HasSuffix(claim.Note, "others took up to 0.23 of the machine")
				if isOpen != (isTimed && others > 0.1) || !isOpen && claim.Verdict != proof.Met {
					t.Errorf("%s, others took %v: %+v", name, others, claim)
				}
			}
		}
	}
}

// A change that costs more with many Foos is explained by memory only where that was measured, and found to cost something for sure.
func TestCostOfAChangeIsExplained(t *testing.T) {
	const because = "it is 1.20 (1.20 to 1.20, min to max of 2) times as well"
	costs := func(f *found, cpu float64) {
		f.Sizes[1].Change.CPU[controllerProcess], f.Sizes[3].Change.CPU[controllerProcess] = 0.1, cpu
	}
	for name, test := range map[string]struct {
		change  func(*found)
		verdict proof.Verdict
		note    string
	}{
		"it is flat":                {func(*found) {}, proof.Met, ""},
		"it may not be":             {func(f *found) { costs(f, 0.15) }, proof.NotJudged, because},
		"it is not":                 {func(f *found) { costs(f, 0.15); f.Sizes[1].Change.CPU[controllerProcess] = 0.15 }, proof.Missed, because},
		"memory was not measured":   {func(f *found) { costs(f, 0.15); f.Rooms = nil }, proof.NotJudged, undecided},
		"memory may make it faster": {func(f *found) { costs(f, 0.15); lastRoom(f).CPU[controllerProcess] = 0.1 }, proof.NotJudged, undecided},
	} {
		t.Run(name, func(t *testing.T) {
			f := everything()
			test.change(f)
			c := f.claimFlat()[0]
			if c.Verdict != test.verdict || !strings.Contains(c.Note, test.note) || (test.note == "") != (c.Note == "") {
				t.Errorf("%+v", c)
			}
		})
	}
	table := everything().roomTables()[0]
	if got := strings.Join(table.Rows[1], " | "); got != "500 | 2.40 | 1.20 (1.20 to 1.20, min to max of 2)" {
		t.Errorf("the table says %s", got)
	}
}

// lastRoom returns the change that was measured last with more room until the next garbage collection.
func lastRoom(f *found) *batch {
	_, much := f.roomsOf()
	return much[len(much)-1].Change
}
