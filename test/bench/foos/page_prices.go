package main

import (
	"fmt"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// ceilings returns, of each round, the share of the floor's rate that could be had by who writes what the operator writes and takes no time
// itself.
func (f *found) ceilings() []float64 {
	if len(f.Prices) == 0 {
		return nil
	}
	shares := make([]float64, len(f.Prices[0].CPU))
	for round := range shares {
		floor, own := 0.0, 0.0
		for _, p := range f.Prices {
			if p.OfFloor {
				floor += p.CPU[round]
			}
			if p.OfOurs {
				own += p.CPU[round]
			}
		}
		shares[round] = floor / own
	}
	return shares
}

func (f *found) pricesSection() *proof.Section {
	if len(f.Prices) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"CPU of the API server and etcd, ms", lowest.name, ours.name}}
	var floor, own float64
	for _, p := range f.Prices {
		median := measure.Median(p.CPU)
		cells := []string{p.Write, "", ""}
		if p.OfFloor {
			floor, cells[1] = floor+median, fmt.Sprintf("%.2f", median)
		}
		if p.OfOurs {
			own, cells[2] = own+median, fmt.Sprintf("%.2f", median)
		}
		if p.OfFloor || p.OfOurs {
			table.Rows = append(table.Rows, cells)
		}
	}
	table.Rows = append(table.Rows, []string{"all of a Foo", fmt.Sprintf("%.2f", floor), fmt.Sprintf("%.2f", own)})
	return &proof.Section{
		Title: "What writes cost",
		Text: []string{
			fmt.Sprintf("The control plane is what all arms wait for: it takes all but a small part of the machine. So what an arm can do at most is decided by what "+
				"its writes cost there. Each sort of write is made %d times in each of %d rounds, with what the operator has written for a Foo, and nobody else at work.", priced, pricedRounds),
			fmt.Sprintf("Who writes what this operator writes, and takes no time itself, reaches %s of the floor's rate. The floor tells of two numbers and makes a Deployment "+
				"with a name and an image. This operator's status has conditions, its Deployment is secured and applied, so that what others add to it stays, and it makes an event.",
				measure.IntervalOf(f.ceilings())),
		},
		Tables: []proof.Table{table},
	}
}
