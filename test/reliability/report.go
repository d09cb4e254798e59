package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/example/memcached-operator/test/reliability/oracle"
)

// report is all that was found.
type report struct {
	Begun      time.Time         `json:"begun"`
	CPUs       int               `json:"cpus"`
	Seed       uint64            `json:"seed"`
	Short      bool              `json:"short"`
	Seconds    float64           `json:"seconds"`
	Scenarios  int               `json:"scenarios"`
	Positions  int               `json:"positions"` // writes that something can go wrong with
	Plans      int               `json:"plans"`
	Violations int               `json:"violations"` // plans that have some
	Campaigns  []*campaignReport `json:"campaigns"`
	RBAC       *rbacReport       `json:"rbac,omitempty"`
	// NotJudged is what could not be tried, and why.
	NotJudged []string `json:"notJudged,omitempty"`
}

// campaignReport is what one campaign has found.
type campaignReport struct {
	Name    string        `json:"name"`
	What    string        `json:"what"`
	Seconds float64       `json:"seconds"`
	Plans   []*planReport `json:"plans"`
}

// planReport is what one plan has found.
type planReport struct {
	Scenario string           `json:"scenario"`
	Faults   string           `json:"faults,omitempty"`
	Fired    int              `json:"fired"`
	Requests int              `json:"requests"`
	Seconds  float64          `json:"seconds"`
	Findings []oracle.Finding `json:"findings,omitempty"`
}

func newReport(o *options) *report {
	return &report{Begun: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Seed: o.seed, Short: o.short}
}

func (r *campaignReport) add(plan *planReport) {
	r.Plans = append(r.Plans, plan)
}

// counts returns how many plans there were, in how many of them something went wrong as it should, and how many have findings.
func (r *campaignReport) counts() (plans, fired, violations int) {
	for _, plan := range r.Plans {
		plans++
		if plan.Fired > 0 {
			fired++
		}
		if len(plan.Findings) > 0 {
			violations++
		}
	}
	return plans, fired, violations
}

func (r *campaignReport) perHour() int {
	return int(float64(len(r.Plans)) / r.Seconds * 3600)
}

func (r *campaignReport) summary() string {
	plans, fired, violations := r.counts()
	return fmt.Sprintf("%d plans, %d with faults that occurred, %d with violations, %d plans/hour", plans, fired, violations, r.perHour())
}

// finish sums up.
func (r *report) finish(s *suite) {
	r.Seconds = time.Since(s.begun).Seconds()
	r.Scenarios = len(s.scenarios)
	for _, campaign := range r.Campaigns {
		plans, _, violations := campaign.counts()
		r.Plans += plans
		r.Violations += violations
		slices.SortFunc(campaign.Plans, func(a, b *planReport) int {
			return cmp.Or(strings.Compare(a.Scenario, b.Scenario), strings.Compare(a.Faults, b.Faults))
		})
	}
}

func (r *report) write(path string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// print prints the tables.
func (r *report) print(w io.Writer) {
	var rows, rest strings.Builder
	rows.WriteString("campaign\tplans\tfaults occurred\tviolations\tplans/hour\tit shows\n")
	for _, campaign := range r.Campaigns {
		plans, fired, violations := campaign.counts()
		fmt.Fprintf(&rows, "%s\t%d\t%d\t%d\t%d\t%s\n", campaign.Name, plans, fired, violations, campaign.perHour(), campaign.What)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, rows.String())
	_ = table.Flush()
	fmt.Fprintf(&rest, "\n%d scenarios, %d writes that something can go wrong with, %d plans in %.0f s on %d CPUs: %.0f plans/hour; seed %d\n",
		r.Scenarios, r.Positions, r.Plans, r.Seconds, r.CPUs, float64(r.Plans)/r.Seconds*3600, r.Seed)
	for _, what := range r.NotJudged {
		fmt.Fprintf(&rest, "NOT JUDGED %s\n", what)
	}
	for _, campaign := range r.Campaigns {
		for _, plan := range campaign.Plans {
			for _, finding := range plan.Findings {
				text, _, _ := strings.Cut(finding.Text, "\n")
				fmt.Fprintf(&rest, "VIOLATION %s / %s: %s: %s\n", plan.Scenario, plan.Faults, finding.Oracle, text)
			}
		}
	}
	fmt.Fprint(w, rest.String())
}
