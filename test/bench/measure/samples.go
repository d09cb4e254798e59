package measure

import (
	"fmt"
	"slices"

	"github.com/example/memcached-operator/test/proof"
)

// Sample is the measurement of one program in one round.
type Sample struct {
	Program  string
	Count    int                // of the objects
	Numbers  map[string]float64 // by name
	Requests map[string]int
	CPU      map[string]float64 // seconds, by process
	Others   float64            // the share of the machine that other processes used, if it was measured
}

// Samples are in the order of the rounds.
type Samples []*Sample

// Rounds has everything measured in turn, in every other round from the last to the first, so that what changes slowly
// on the machine affects all of it.
func Rounds[T any](count int, all []T, of func(T) (*Sample, error)) (Samples, error) {
	var samples Samples
	all = slices.Clone(all)
	for round := range count {
		for _, one := range all {
			s, err := of(one)
			if err != nil {
				return nil, err
			}
			Log("round %d of %d: %s, %d objects: %v", round+1, count, s.Program, s.Count, s.Numbers)
			samples = append(samples, s)
		}
		slices.Reverse(all)
	}
	return samples, nil
}

// Of returns the samples of a program with a number of objects; 0 is any number.
func (all Samples) Of(program string, count int) Samples {
	return slices.DeleteFunc(slices.Clone(all), func(s *Sample) bool {
		return s.Program != program || count > 0 && s.Count != count
	})
}

// Numbers returns one number of the samples, without those in which it was not measured.
func (all Samples) Numbers(name string) []float64 {
	var values []float64
	for _, s := range all {
		if value, isMeasured := s.Numbers[name]; isMeasured {
			values = append(values, value)
		}
	}
	return values
}

// Others returns the largest share of the machine that other processes used.
func (all Samples) Others() float64 {
	most := 0.0
	for _, s := range all {
		most = max(most, s.Others)
	}
	return most
}

// groups returns the samples by program and number of objects.
func (all Samples) groups() []Samples {
	var groups []Samples
	for _, s := range all {
		i := slices.IndexFunc(groups, func(g Samples) bool { return g[0].Program == s.Program && g[0].Count == s.Count })
		if i < 0 {
			groups = append(groups, Samples{s})
		} else {
			groups[i] = append(groups[i], s)
		}
	}
	return groups
}

// Tables returns a table of numbers, with those of one program as multiples of the others', and a table of requests per
// object or per round, if any were counted.
func (all Samples) Tables(own string, names []string, isPerObject bool) []proof.Table {
	t := proof.Table{Columns: append([]string{"program", "objects"}, names...)}
	hasOthers := all.Others() > 0
	if hasOthers {
		t.Columns = append(t.Columns, "CPU used by others")
	}
	row := func(name string, of Samples, others string, values func(number string) []float64) {
		cells := []string{name, fmt.Sprint(of[0].Count)}
		for _, number := range names {
			cell := "-"
			if found := values(number); len(found) > 0 {
				cell = IntervalOf(found).String()
			}
			cells = append(cells, cell)
		}
		if hasOthers {
			cells = append(cells, others)
		}
		t.Rows = append(t.Rows, cells)
	}
	groups := all.groups()
	heads := make([]string, 0, len(groups))
	requests := make([]map[string]int, 0, len(groups))
	by := make([]int, 0, len(groups))
	for _, of := range groups {
		sum, count := map[string]int{}, len(of)
		for _, s := range of {
			Add(sum, s.Requests)
		}
		if isPerObject {
			count *= of[0].Count
		}
		heads = append(heads, fmt.Sprintf("%s, %d objects", of[0].Program, of[0].Count))
		requests = append(requests, sum)
		by = append(by, count)
		row(of[0].Program, of, fmt.Sprintf("up to %.3f", of.Others()), of.Numbers)
	}
	for _, other := range groups {
		if of := all.Of(own, other[0].Count); other[0].Program != own && len(of) > 0 {
			row(own+", times the "+other[0].Program, of, "", func(number string) []float64 {
				return Ratios(of.Numbers(number), other.Numbers(number))
			})
		}
	}
	if !slices.ContainsFunc(requests, func(counted map[string]int) bool { return len(counted) > 0 }) {
		return []proof.Table{t}
	}
	return []proof.Table{t, RequestTable("Requests", heads, requests, by)}
}
