package main

import (
	"fmt"
	"slices"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
)

// ceilings returns, of each round, the share of the floor's rate that could be had by who does to the control plane what the operator does,
// and takes no time itself. A burst keeps the machine busy, so the CPU time that all processes take for a Foo decides the rate.
func (f *found) ceilings() []float64 {
	of := byArm(f.Bursts)
	floor, own := of[lowest.name], of[ours.name]
	if len(floor) != len(own) {
		return nil
	}
	return measure.Ratios(each(floor, (*batch).everyone), each(own, func(b *batch) float64 { return b.everyone() - b.controller() }))
}

func (f *found) pricesSection() *proof.Section {
	if len(f.Prices) == 0 {
		return nil
	}
	table := proof.Table{Columns: []string{"CPU of the API server and etcd, ms", lowest.name, ours.name}}
	var floor, own float64
	var others []float64
	for _, p := range f.Prices {
		cpu := measure.Median(p.CPU)
		others = append(others, p.Others...)
		cells := []string{p.Write, "", ""}
		if p.OfFloor {
			floor, cells[1] = floor+cpu, fmt.Sprintf("%.2f", cpu)
		}
		if p.OfOurs {
			own, cells[2] = own+cpu, fmt.Sprintf("%.2f", cpu)
		}
		if p.OfFloor || p.OfOurs {
			table.Rows = append(table.Rows, cells)
		}
	}
	table.Rows = append(table.Rows, []string{"sum of these", fmt.Sprintf("%.2f", floor), fmt.Sprintf("%.2f", own)})
	text := []string{fmt.Sprintf("Each sort of write is made %d times in each of %d rounds, with what the operator has written for "+
		"a Foo, and nobody else at work. The floor tells of two numbers and makes a Deployment with a name and an image. This operator's "+
		"status has conditions, its Deployment is secured and applied, so that what others add to it stays, and it makes an event.", priced, pricedRounds)}
	if len(others) > 0 {
		text[0] += fmt.Sprintf(" Other processes took at most %s of the machine's CPU time meanwhile.", most(others))
	}
	if ceilings := f.ceilings(); len(ceilings) > 0 {
		of := byArm(f.Bursts)
		cells := []string{"a Foo of the bursts, with its watches and all else"}
		for _, a := range []arm{lowest, ours} {
			cells = append(cells, fmt.Sprintf("%.2f", measure.Median(each(of[a.name], func(b *batch) float64 { return b.system() - b.controller() }))))
		}
		table.Rows = append(table.Rows, cells)
		busy := func(a arm) float64 { return measure.Median(each(of[a.name], (*batch).busy)) }
		text = append(text, fmt.Sprintf("What could be had at most is told by the bursts. They keep the machine busy: the floor's take %.2f of its CPU time and this operator's %.2f, and %s of rest after "+
			"the last Foo are in that. So the rate is as high as the CPU time that all processes take for a Foo is low. The floor's, all processes included, is %s of this "+
			"operator's with its controller left out. That is the share of the floor's rate which a controller would reach that makes these writes and takes no time itself.", busy(lowest), busy(ours), countedAfter, measure.IntervalOf(ceilings)))
	}
	return &proof.Section{Title: "What writes cost", Text: text, Tables: append([]proof.Table{table}, f.insteadTables()...)}
}

// insteadTables tell what the writes would cost that the operator could make instead of its own; none if that was not measured.
func (f *found) insteadTables() []proof.Table {
	table := proof.Table{Title: "What the operator does, and what it could do instead",
		Columns: []string{"what it does", "CPU of the API server and etcd, ms", "what it could do", "ms", "multiple"}}
	for _, p := range f.Prices {
		i := slices.IndexFunc(f.Prices, func(own *price) bool { return p.Instead != "" && own.Write == p.Instead })
		if i < 0 {
			continue
		}
		own := f.Prices[i]
		table.Rows = append(table.Rows, []string{own.Write, fmt.Sprintf("%.2f", measure.Median(own.CPU)), p.Write, fmt.Sprintf("%.2f", measure.Median(p.CPU)),
			measure.IntervalOf(measure.Ratios(p.CPU, own.CPU)).String()})
	}
	if len(table.Rows) == 0 {
		return nil
	}
	return []proof.Table{table}
}
