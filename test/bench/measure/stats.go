package measure

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Percentile returns the least of sorted values that so many hundredths of them do not exceed.
func Percentile(sorted []float64, hundredths int) float64 {
	return sorted[max(0, (len(sorted)*hundredths+99)/100-1)]
}

// Median returns the middle value, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Interval is a median, and what it may be.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Of is how many values there were, and How what the interval is.
	Of  int    `json:"of"`
	How string `json:"how"`
}

// fewest is of how many values at least a bootstrap says something.
const fewest = 6

// IntervalOf returns the median of values with the 95 % interval of a bootstrap, or with the least and the greatest
// value if there are fewer than six. The same values always give the same interval.
func IntervalOf(values []float64) Interval {
	interval := Interval{Median: Median(values), Low: slices.Min(values), High: slices.Max(values), Of: len(values),
		How: "min to max"}
	if len(values) < fewest {
		return interval
	}
	random := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, 10000)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		medians[i] = Median(drawn)
	}
	slices.Sort(medians)
	interval.Low, interval.High, interval.How = medians[len(medians)*25/1000], medians[len(medians)*975/1000],
		"95 % bootstrap"
	return interval
}

// String returns the interval with three digits.
func (i Interval) String() string {
	return fmt.Sprintf("%s (%s to %s, %s of %d)", digits(i.Median), digits(i.Low), digits(i.High), i.How, i.Of)
}

// digits writes a number with three digits, but no fewer than are before its point.
func digits(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return fmt.Sprintf("%.2f", value)
	}
}

// Ratios returns the quotients of pairs.
func Ratios(of, to []float64) []float64 {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return ratios
}
