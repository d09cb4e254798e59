package proof

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scale places values between two places of a picture.
type scale struct {
	first, last float64 // values
	from, to    float64 // places
	isLog       bool
	ticks       []float64
}

// scaleOf returns the scale of an axis that shows all values and the axis' limit.
func scaleOf(axis Axis, values []float64, from, to float64) scale {
	if axis.Limit != 0 {
		values = append(values, axis.Limit)
	}
	s := scale{from: from, to: to, isLog: axis.Log}
	if axis.Log {
		low, high := math.Inf(1), math.Inf(-1)
		for _, value := range values {
			low, high = min(low, math.Log10(value)), max(high, math.Log10(value))
		}
		low, high = math.Floor(low), math.Ceil(high)
		if low == high {
			high++
		}
		for decade := low; decade <= high; decade++ {
			s.ticks = append(s.ticks, math.Pow(10, decade))
		}
		s.first, s.last = s.ticks[0], s.ticks[len(s.ticks)-1]
		return s
	}
	high := 0.0
	for _, value := range values {
		high = max(high, value)
	}
	step := tickStep(high)
	for i := 0.0; ; i++ {
		s.ticks = append(s.ticks, i*step)
		if i*step >= high && i > 0 {
			break
		}
	}
	s.last = s.ticks[len(s.ticks)-1]
	return s
}

// tickStep returns 1, 2 or 5 times a power of ten, such that some four to eight of them reach high.
func tickStep(high float64) float64 {
	if high <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(high/4)))
	for _, times := range []float64{1, 2, 5} {
		if high/(times*power) <= 8 {
			return times * power
		}
	}
	return 10 * power
}

func (s scale) place(value float64) float64 {
	share := (value - s.first) / (s.last - s.first)
	if s.isLog {
		share = (math.Log10(value) - math.Log10(s.first)) / (math.Log10(s.last) - math.Log10(s.first))
	}
	return s.from + share*(s.to-s.from)
}

// number returns a value as it is written in a picture: four digits, thousands apart.
func number(value float64) string {
	if math.Abs(value) < 1000 {
		return strconv.FormatFloat(value, 'g', 4, 64)
	}
	digits := strconv.FormatFloat(value, 'f', 0, 64)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}

// check finds what cannot be drawn.
func (p *Plot) check() error {
	if (len(p.Lines) == 0) == (len(p.Bars) == 0) {
		return errors.New("a plot has either lines or bars")
	}
	xs, ys := p.values()
	for _, axis := range []struct {
		Axis
		values []float64
	}{{p.X, xs}, {p.Y, ys}} {
		for _, value := range axis.values {
			if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 || axis.Log && value == 0 {
				return fmt.Errorf("%v has no place on the axis %q", value, axis.Label)
			}
		}
	}
	for _, line := range p.Lines {
		if len(line.Points) == 0 {
			return fmt.Errorf("the line %q has no points", line.Name)
		}
	}
	return nil
}

// values returns all values of each axis.
func (p *Plot) values() (xs, ys []float64) {
	for _, line := range p.Lines {
		for _, point := range line.Points {
			xs, ys = append(xs, point.X), append(ys, point.Y)
		}
	}
	for _, bar := range p.Bars {
		xs = append(xs, bar.Value)
		if bar.hasInterval() {
			xs = append(xs, bar.Low, bar.High)
		}
	}
	return xs, ys
}

func (b Bar) hasInterval() bool {
	return b.Low != 0 || b.High != 0
}
