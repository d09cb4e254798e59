package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/proof"
)

// found is all that has been measured, section by section. It is kept in a file, so that a run that was cut off can
// resume.
type found struct {
	Scale scale `json:"scale"`
	// Operator and Benchmark are hashes of the sources of what was measured and of what measured it.
	Operator  string `json:"operator"`
	Benchmark string `json:"benchmark"`
	// Baseline is the path of the program that this operator was compared with; empty for the sample-controller.
	Baseline string          `json:"baseline,omitempty"`
	Settings []proof.Setting `json:"settings,omitempty"`
	// Measured are the sections there are results of, and since when.
	Measured map[string]time.Time `json:"measured"`

	Paced     []*batch    `json:"paced,omitempty"`
	Bursts    []*batch    `json:"bursts,omitempty"`
	Sizes     []*size     `json:"sizes,omitempty"`
	Idle      []*idleness `json:"idle,omitempty"`
	Restarts  []*restart  `json:"restarts,omitempty"`
	Failovers []*failover `json:"failovers,omitempty"`
	Growths   []*growth   `json:"growths,omitempty"`
}

// scale is how much is measured.
type scale struct {
	Paced  int `json:"paced"`  // Foos that are created no faster than they become ready
	Burst  int `json:"burst"`  // Foos that are created at once
	Rounds int `json:"rounds"` // how often each program is measured
	// for the stock sample-controller, which cannot finish in time; 0 to leave it out
	StockTime  time.Duration `json:"stockTime"`
	Sizes      []int         `json:"sizes"`      // how many Foos there are
	Changes    int           `json:"changes"`    // Foos that are scaled at each of these sizes
	Idle       int           `json:"idle"`       // Foos that nothing happens to
	IdleTime   time.Duration `json:"idleTime"`   // how long
	IdleOthers time.Duration `json:"idleOthers"` // how long for the sample-controller, which is never idle
	Restart    int           `json:"restart"`    // Foos that exist when a controller starts
	Restarts   int           `json:"restarts"`   // how often each controller starts
	Failovers  int           `json:"failovers"`  // how often the leader ends, by each signal
	Nodes      []int         `json:"nodes"`      // of Memcacheds
}

// full is the scale of the page in docs/proof, short is enough to count requests, and paired to compare two builds in
// 10 minutes.
var (
	full = scale{Paced: 1000, Burst: 5000, Rounds: 8, StockTime: 2 * time.Minute, Sizes: []int{1000, 10_000, 50_000},
		Changes: 1000,
		Idle:    10_000, IdleTime: 10 * time.Minute, IdleOthers: 2 * time.Minute, Restart: 10_000, Restarts: 4, Failovers: 5,
		Nodes: []int{10, 100, 1000}}
	short = scale{Paced: 200, Burst: 200, Rounds: 1, Sizes: []int{100, 200}, Changes: 50,
		Idle: 200, IdleTime: 10 * time.Second, IdleOthers: 5 * time.Second, Restart: 200, Restarts: 1, Failovers: 1,
		Nodes: []int{20}}
	paired = scale{Paced: 200, Burst: 600, Rounds: 3, Sizes: []int{300, 3000}, Changes: 300,
		Idle: 300, IdleTime: 30 * time.Second, IdleOthers: 30 * time.Second, Restart: 500, Restarts: 1, Failovers: 1,
		Nodes: []int{20}}
)

// scale returns how much this run measures.
func (b *bench) scale() scale {
	s := full
	switch {
	case b.short:
		s = short
	case b.baseline != "":
		s = paired
	}
	if b.rounds > 0 {
		s.Rounds = b.rounds
	}
	return s
}

// read reads what was found before, if the run adds to it; else nothing was. It returns an error if that belongs to
// another operator, another form of this benchmark or another scale.
func read(path string, now *found, adds bool) (*found, error) {
	before := &found{}
	isThere, err := proof.Kept(path, before)
	switch {
	case !adds || err == nil && !isThere:
		return now, nil
	case err != nil:
		return nil, err
	case fmt.Sprint(before.Scale) != fmt.Sprint(now.Scale):
		return nil, fmt.Errorf("%s was measured with other numbers of Foos: delete it, or name another file", path)
	}
	if err := proof.SameOperator(path, before.Operator, now.Operator); err != nil {
		return nil, err
	}
	return before, proof.SameSuite(path, before.Benchmark, now.Benchmark)
}

// benchmark returns a hash of the sources of this benchmark: this program without the files that only report results,
// so that hours of measurements stay valid when the page changes, what it shares with others, testenv, and the pinned
// sample-controller.
func benchmark(root string) (string, error) {
	parts := []string{"test/bench/foos", "test/bench/measure", "test/testenv", "test/bench/samplecontroller"}
	return proof.Fingerprint(root, parts, func(name string) bool {
		return name == "claims.go" ||
			strings.HasPrefix(name, "page")
	})
}
