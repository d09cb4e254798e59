package main

import (
	"time"

	"github.com/example/memcached-operator/test/proof"
)

// found is all that has been measured.
type found struct {
	Scale scale `json:"scale"`
	// Operator is a hash of the sources of this operator.
	Operator string `json:"operator"`
	// Baseline is the path of the program that this operator was compared with; empty for the sample-controller.
	Baseline string          `json:"baseline,omitempty"`
	Settings []proof.Setting `json:"settings,omitempty"`

	Paced    []*batch    `json:"paced,omitempty"`
	Bursts   []*batch    `json:"bursts,omitempty"`
	Sizes    []*size     `json:"sizes,omitempty"`
	Idle     []*idleness `json:"idle,omitempty"`
	Restarts []*restart  `json:"restarts,omitempty"`
}

// scale is how much is measured.
type scale struct {
	Paced      int           `json:"paced"`      // Foos that are created no faster than they become ready
	Burst      int           `json:"burst"`      // Foos that are created at once
	Rounds     int           `json:"rounds"`     // how often each program is measured
	Sizes      []int         `json:"sizes"`      // how many Foos there are
	Changes    int           `json:"changes"`    // Foos that are scaled at each of these sizes
	Idle       int           `json:"idle"`       // Foos that nothing happens to
	IdleTime   time.Duration `json:"idleTime"`   // how long
	IdleOthers time.Duration `json:"idleOthers"` // how long for the sample-controller, which is never idle
	Restart    int           `json:"restart"`    // Foos that exist when an operator starts
	Restarts   int           `json:"restarts"`   // how often each operator starts
}

// full is the scale of the page in docs/proof, short is enough to count requests, and paired to compare two builds in
// 10 minutes.
var (
	full = scale{Paced: 1000, Burst: 5000, Rounds: 8, Sizes: []int{1000, 10_000, 50_000}, Changes: 1000,
		Idle: 10_000, IdleTime: 10 * time.Minute, IdleOthers: 2 * time.Minute,
		Restart: 10_000, Restarts: 4}
	short = scale{Paced: 200, Burst: 200, Rounds: 1, Sizes: []int{100, 200}, Changes: 50,
		Idle: 200, IdleTime: 10 * time.Second, IdleOthers: 5 * time.Second,
		Restart: 200, Restarts: 1}
	paired = scale{Paced: 200, Burst: 600, Rounds: 3, Sizes: []int{300, 3000}, Changes: 300,
		Idle: 300, IdleTime: 30 * time.Second, IdleOthers: 30 * time.Second,
		Restart: 500, Restarts: 1}
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
