package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/example/memcached-operator/test/proof"
)

// rowOf returns the cells of the row of a table that begins with a text, as one text.
func rowOf(t *testing.T, table proof.Table, name string) string {
	t.Helper()
	for _, row := range table.Rows {
		if row[0] == name {
			return strings.Join(row[1:], " | ")
		}
	}
	t.Errorf("there is no row %q in %v", name, table.Rows)
	return ""
}

// The page tells in each table of times how much others took, the most of all rounds.
func TestWhatOthersTookIsTold(t *testing.T) {
	f := everything()
	f.Paced[0].Others, f.Bursts[4].Others, f.Steady[1].Others, f.Idle[0].Others, f.Restarts[2].Others = 0.011, 0.012, 0.013, 0.014, 0.015
	for i, s := range f.sizesOf(ours, f.Scale.Sizes[0]) {
		s.Change.Others = 0.016 * float64(i)
	}
	f.Failovers[0].Others = 0.018
	if row := rowOf(t, f.failoverSection().Tables[0], "SIGTERM"); !strings.HasSuffix(row, " | 1 | 0.018") {
		t.Error(row)
	}
	f.Prices[1].Others = []float64{0.01, 0.017, 0.01}
	for want, table := range map[string]proof.Table{
		"0.011": f.requestsSection().Tables[1], "0.012": f.rateSection().Tables[0], "0.013": f.latencySection().Tables[0],
		"0.014": f.idleSection().Tables[0], "0.015": f.restartSection().Tables[0], "0.016": f.sizesSection(resource.MustParse("1Gi")).Tables[1],
	} {
		if row := rowOf(t, table, ours.name); table.Columns[len(table.Columns)-1] != othersColumn || !strings.HasSuffix(row, " | "+want) {
			t.Errorf("there is no %s in %q: %s", want, row, table.Columns)
		}
	}
	if text := strings.Join(f.pricesSection().Text, " "); !strings.Contains(text, "took at most 0.017 of") {
		t.Error(text)
	}
}

// Where there are rounds, ratios have an interval; what was measured once says so.
func TestRatiosAreToldWithAnInterval(t *testing.T) {
	f := everything()
	restarts := f.restartSection().Tables[1]
	for name, want := range map[string]string{
		"ready after, s": "2.00 (2.00 to 2.00, min to max of 2)", "requests": "0.01 (0.01 to 0.01, min to max of 2)",
		"writes": "0.00 (0.00 to 0.00, min to max of 2)", "CPU s": "0.25 (0.25 to 0.25, min to max of 2)",
	} {
		if row := rowOf(t, restarts, name); row != want {
			t.Errorf("%s: %s, not %s", name, row, want)
		}
	}
	f.Restarts[1].Writes = 0
	if row := rowOf(t, f.restartSection().Tables[1], "writes"); row != "-" {
		t.Errorf("a multiple of nothing is %s", row)
	}
	for _, text := range []string{f.requestsSection().Text[0], f.idleSection().Text[0]} {
		if !strings.Contains(text, "Each arm was measured once, so there is no interval.") {
			t.Error(text)
		}
	}
	f.sizesOf(ours, f.Scale.Sizes[0])[0].RSS = 20e6
	sizes := f.sizesSection(resource.MustParse("1Gi")).Tables
	if row := rowOf(t, sizes[2], "100"); !strings.Contains(sizes[2].Title, "measured once") || !strings.Contains(row, " | 0.63 (0.50 to 0.76, min to max of 2) | ") {
		t.Errorf("%s: %s", sizes[2].Title, row)
	}
	f.Sizes = append(f.Sizes, &size{Arm: lifted.name, Foos: f.Scale.Sizes[1], Heap: 21e6, RSS: 42e6, Peak: 40e6, Ready: 1})
	slopes := f.sizesSection(resource.MustParse("1Gi")).Tables[3]
	if row := rowOf(t, slopes, lifted.name); row != "10000, measured once | 20000, measured once" {
		t.Error(row)
	}
	if row := rowOf(t, slopes, ours.name); !strings.HasPrefix(row, "4000 (4000 to 4000, min to max of 2) | ") {
		t.Error(row)
	}
	for range 5 {
		f.Sizes = append(f.Sizes, f.sizesOf(ours, f.Scale.Sizes[0])[0])
	}
	if row := rowOf(t, f.onceTable(), "100"); strings.Count(row, ", min to max of 7)") != len(memoryColumns) {
		t.Errorf("one number of the sample-controller has no interval of a pair: %s", row)
	}
}

// The page and the claim tell the same of what was looked at again, and there are no more writes than requests.
func TestIdlenessIsToldTheSame(t *testing.T) {
	f := everything()
	table := f.idleSection().Tables[0]
	row, claim := rowOf(t, table, ours.name), f.claimIdle()[0]
	if !strings.Contains(row, " | 3 times | 0 | 0 | ") || !strings.HasSuffix(claim.What, "all looked at again 3 times") {
		t.Errorf("%s, and %s", row, claim.What)
	}
}

func TestTitlesSayWhatIsCounted(t *testing.T) {
	f := everything()
	if title := f.requestsSection().Plots[0].Title; title != "Requests for each Foo, from its creation on" {
		t.Error(title)
	}
	if text := strings.Join(introduction, " "); !strings.Contains(text, "from before the first until 3s after the last is as it should be") {
		t.Error(text)
	}
}

// Of Memcacheds that grow, the one with the most writes is held against the bar.
func TestClaimOfGrowth(t *testing.T) {
	f := everything()
	f.Growths[0].StatusWrites = 8
	if c := f.claimGrowths()[0]; c.What != "status writes of a Memcached that grows to up to 30 nodes in 10s" || c.Found != "8" || c.Verdict != proof.Met {
		t.Errorf("%+v", c)
	}
}
