package measure

import "testing"

func TestPercentile(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = float64(i + 1)
	}
	for hundredths, want := range map[int]float64{0: 1, 1: 2, 50: 100, 99: 198, 100: 200} {
		if got := Percentile(values, hundredths); got != want {
			t.Errorf("p%d of 1 to 200 is %v, want %v", hundredths, got, want)
		}
	}
	if got := Percentile(values[:1], 99); got != 1 {
		t.Errorf("p99 of one value is %v", got)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 9, 2}, 3}} {
		if got := Median(test.values); got != test.want {
			t.Errorf("the median of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

func TestIntervalOf(t *testing.T) {
	if got := IntervalOf([]float64{2, 10, 3}).String(); got != "3.00 (2.00 to 10.0 in 3 rounds)" {
		t.Error(got)
	}
}

func TestRatios(t *testing.T) {
	if got := Ratios([]float64{1, 9}, []float64{2, 3}); got[0] != 0.5 || got[1] != 3 {
		t.Errorf("1/2 and 9/3 are %v", got)
	}
}
