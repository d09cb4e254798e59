package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/example/memcached-operator/test/proof"
)

// Percentile returns a percentile of sorted values, in hundredths.
func Percentile(sorted []float64, hundredths int) float64 {
	return sorted[max(0, (len(sorted)*hundredths+99)/100-1)]
}

// Interval is the median of values with its 95 % confidence interval.
type Interval struct {
	Median, Low, High float64
	of                int
}

// IntervalOf returns the interval of one or more values. It reaches from one order statistic to another, which assumes
// nothing of the distribution. With fewer than 9 values it is from the least to the greatest, and with fewer than 6 its
// confidence is lower.
func IntervalOf(values []float64) Interval {
	sorted := slices.Sorted(slices.Values(values))
	count := len(sorted)
	outside := 0 // how many values at each end the interval leaves out
	for chance, sum := math.Pow(0.5, float64(count)), 0.0; outside < (count-1)/2; outside++ {
		sum += chance // that at most so many values are below the median of the distribution
		chance *= float64(count-outside) / float64(outside+1)
		if sum+chance > 0.025 {
			break
		}
	}
	return Interval{(sorted[(count-1)/2] + sorted[count/2]) / 2, sorted[outside], sorted[count-1-outside], count}
}

// String returns the median, with the interval unless all values are the same.
func (i Interval) String() string {
	if i.Low == i.High {
		return Digits(i.Median)
	}
	return fmt.Sprintf("%s (%s to %s, %d rounds)", Digits(i.Median), Digits(i.Low), Digits(i.High), i.of)
}

// Digits formats a number for a table: three decimals at most, and fewer for a greater number.
func Digits(value float64) string {
	unit := 1000.0
	if value >= 10 {
		unit = 10
	}
	if value >= 100 {
		unit = 1
	}
	return strconv.FormatFloat(math.Round(value*unit)/unit, 'f', -1, 64)
}

// Ratios returns the quotients of numbers that were measured in the same rounds; none if there are no pairs.
func Ratios(of, to []float64) []float64 {
	if len(of) != len(to) || slices.Contains(to, 0) {
		return nil
	}
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return ratios
}

// Differences returns the differences of numbers that were measured in the same rounds; none if there are no pairs.
func Differences(of, less []float64) []float64 {
	if len(of) != len(less) {
		return nil
	}
	differences := make([]float64, len(of))
	for i := range of {
		differences[i] = of[i] - less[i]
	}
	return differences
}

// Bar is a limit for a number that was measured in some rounds.
type Bar struct {
	What     string
	Values   []float64
	Limit    float64
	IsLeast  bool   // the limit is a minimum, not a maximum
	IsCount  bool   // every round must be within the limit, and a single round is enough
	Unjudged string // why the values cannot be judged, if they cannot
}

// Claim judges the interval of the values.
func (b Bar) Claim() proof.Claim {
	i, side := IntervalOf(b.Values), "at most"
	isMet, isMissed := i.High <= b.Limit, i.Low > b.Limit
	if b.IsLeast {
		side, isMet, isMissed = "at least", i.Low >= b.Limit, i.High < b.Limit
	}
	c := proof.Claim{What: b.What, Bar: side + " " + Digits(b.Limit), Found: i.String(), Verdict: proof.Judge(isMet),
		Note: b.Unjudged}
	switch {
	case b.IsCount:
		c.Verdict = proof.Judge(slices.Max(b.Values) <= b.Limit)
		return c
	case b.Unjudged != "":
	case len(b.Values) == 1:
		c.Note = "measured once"
	case !isMet && !isMissed:
		c.Note = "the interval includes the bar"
	default:
		return c
	}
	c.Verdict = proof.NotJudged
	return c
}
