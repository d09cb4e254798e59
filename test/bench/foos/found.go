package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/proof"
)

// found is all that has been measured, section by section; what has not been is empty. It is kept in a file, so that a run that was cut
// off can go on.
type found struct {
	Scale scale `json:"scale"`
	// Measured says of each section when and how it was.
	Measured map[string]measured `json:"measured"`
	// operator and benchmark are those which there are now, as proof.Operator and benchmark say it.
	operator, benchmark string

	Paced     []*batch    `json:"paced,omitempty"`
	Bursts    []*batch    `json:"bursts,omitempty"`
	Parts     []*part     `json:"parts,omitempty"`
	Prices    []*price    `json:"prices,omitempty"`
	Steady    []*batch    `json:"steady,omitempty"`
	Sizes     []*size     `json:"sizes,omitempty"`
	Rooms     []*size     `json:"rooms,omitempty"`
	Idle      []*idleness `json:"idle,omitempty"`
	Restarts  []*restart  `json:"restarts,omitempty"`
	Failovers []*failover `json:"failovers,omitempty"`
	Growths   []*growth   `json:"growths,omitempty"`
}

// measured is when a section was measured, with which operator and benchmark, and with which settings.
type measured struct {
	At       time.Time `json:"at"`
	Operator string    `json:"operator"`
	// Benchmark and Settings are empty where a section was measured before they were kept.
	Benchmark string          `json:"benchmark,omitempty"`
	Settings  []proof.Setting `json:"settings,omitempty"`
}

// benchmarkParts are what measures, below the repository's root: this program, what it shares with others, what starts the API server and reads
// its log, and the sample-controller as it is pinned.
var benchmarkParts = []string{"test/bench/foos", "test/bench/measure", "test/testenv", "test/bench/samplecontroller"}

// benchmark returns 12 hexadecimal digits that stand for this benchmark in the tree below a root, as those of proof.Operator for the
// operator.
func benchmark(root string) (string, error) {
	return proof.Fingerprint(root, benchmarkParts, onlyTells)
}

// onlyTells tells whether a file only tells what was found, and measures nothing: what hours were spent on holds when that is told in
// another way.
func onlyTells(name string) bool {
	switch name {
	case "claims.go", "found.go", "settings.go":
		return true
	}
	return strings.HasPrefix(name, "page")
}

// has tells whether a section was measured with the operator and the benchmark that there are now.
func (f *found) has(section string) bool {
	_, isMeasured := f.Measured[section]
	return isMeasured && f.differs(section) == ""
}

// differs tells what a section was measured with that is not what there is now; nothing if all is.
func (f *found) differs(section string) string {
	var all []string
	m := f.Measured[section]
	if m.Operator != f.operator {
		all = append(all, "of another operator, "+m.Operator)
	}
	if m.Benchmark != f.benchmark {
		all = append(all, "with another form of this benchmark")
	}
	return strings.Join(all, ", ")
}

// scale is how much is measured.
type scale struct {
	Paced      int           `json:"paced"`      // Foos that are made no faster than they converge
	Burst      int           `json:"burst"`      // Foos that are made at once
	Rounds     int           `json:"rounds"`     // how often each arm is measured
	StockTime  time.Duration `json:"stockTime"`  // for the stock sample-controller, which takes longer than anybody would wait; 0 to leave it out
	Steady     int           `json:"steady"`     // Foos that are made at a steady rate
	Sizes      []int         `json:"sizes"`      // how many Foos there are
	Changes    int           `json:"changes"`    // Foos that are scaled at each of these sizes
	Idle       int           `json:"idle"`       // Foos that nothing happens to
	IdleTime   time.Duration `json:"idleTime"`   // for how long
	IdleOthers time.Duration `json:"idleOthers"` // and how long for the sample-controller, which is never idle
	Restart    int           `json:"restart"`    // Foos that are there when a controller starts
	Restarts   int           `json:"restarts"`   // how often it does
	Failovers  int           `json:"failovers"`  // how often the leader ends, by each signal
	Nodes      []int         `json:"nodes"`      // of Memcacheds
}

// full is what pages are made from.
var full = scale{
	Paced: 1000, Burst: 5000, Rounds: 8, StockTime: 2 * time.Minute, Steady: 2000,
	Sizes: []int{1000, 10_000, 50_000}, Changes: 1000,
	Idle: 10_000, IdleTime: 10 * time.Minute, IdleOthers: 2 * time.Minute,
	Restart: 10_000, Restarts: 4, Failovers: 5, Nodes: []int{10, 100, 1000},
}

// times returns a scale with another number of Foos everywhere, as often.
func (s scale) times(factor float64) scale {
	fewer := func(count int) int { return max(20, int(float64(count)*factor)) }
	s.Paced, s.Burst, s.Steady, s.Changes, s.Idle, s.Restart = fewer(s.Paced), fewer(s.Burst), fewer(s.Steady), fewer(s.Changes), fewer(s.Idle), fewer(s.Restart)
	sizes := make([]int, len(s.Sizes))
	for i, size := range s.Sizes {
		sizes[i] = fewer(size)
	}
	s.Sizes = sizes
	return s
}

// short is enough to count requests by, and takes some minutes.
var short = scale{
	Paced: 200, Burst: 200, Rounds: 1, Steady: 200, Sizes: []int{100, 200}, Changes: 50,
	Idle: 200, IdleTime: 10 * time.Second, IdleOthers: 5 * time.Second, Restart: 200, Restarts: 1, Failovers: 1, Nodes: []int{20},
}

// read reads what has been found before, with the same scale.
func read(path string, s scale) (*found, error) {
	fresh := &found{Scale: s, Measured: map[string]measured{}}
	before := &found{}
	if isThere, err := proof.Kept(path, before); err != nil || !isThere {
		return fresh, err
	}
	if fmt.Sprint(before.Scale) != fmt.Sprint(s) {
		return nil, fmt.Errorf("%s is of a run with other numbers of Foos: delete it, or name another file", path)
	}
	return before, nil
}
