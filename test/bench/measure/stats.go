package measure

import (
	"fmt"
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

// Interval is the median of values, with the least and the greatest of them.
type Interval struct {
	Median, Low, High float64
	Of                int // how many values there are
}

// IntervalOf returns the interval of values.
func IntervalOf(values []float64) Interval {
	return Interval{Median(values), slices.Min(values), slices.Max(values), len(values)}
}

// String returns the interval with three digits.
func (i Interval) String() string {
	return fmt.Sprintf("%s (%s to %s in %d rounds)", digits(i.Median), digits(i.Low), digits(i.High), i.Of)
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
