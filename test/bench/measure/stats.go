package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Percentile returns the least of sorted values that so many hundredths of them do not exceed.
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
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	default:
		return strconv.FormatFloat(math.Round(value*1000)/1000, 'f', -1, 64)
	}
}
