package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/runner"
)

// report is all that was found.
type report struct {
	// Operator is that of which it was found, as proof.Operator says it.
	Operator string `json:"operator"`
	// Suite is by what it was found, as proof.Suite says it.
	Suite      string            `json:"suite"`
	Begun      time.Time         `json:"begun"`
	CPUs       int               `json:"cpus"`
	Seed       uint64            `json:"seed"`
	Short      bool              `json:"short"`
	Seconds    float64           `json:"seconds"`
	Scenarios  int               `json:"scenarios"`
	Positions  int               `json:"positions"` // writes that a fault can hit
	Plans      int               `json:"plans"`
	Violations int               `json:"violations"` // plans with findings
	Campaigns  []*campaignReport `json:"campaigns"`
	Used       []string          `json:"used"`    // permissions, as "verb group/resource"
	Refused    []string          `json:"refused"` // requests of operators that have all rights, by an API server that runs
	// Starting are those that an API server has refused before it was ready, by verb and resource: it knew no roles, or
	// not our kinds, yet.
	Starting map[string]int `json:"refusedBeforeReady"`
	RBAC     *rbacReport    `json:"rbac,omitempty"`
	// NotJudged is what could not be tried, and why.
	NotJudged []string `json:"notJudged,omitempty"`
}

// campaignReport is what one campaign has found.
type campaignReport struct {
	Name    string        `json:"name"`
	What    string        `json:"what"`
	Seconds float64       `json:"seconds"`
	Plans   []*planReport `json:"plans"`
	began   time.Time
}

// planReport is what one plan has found.
type planReport struct {
	Scenario string           `json:"scenario"`
	Faults   string           `json:"faults,omitempty"`
	Fired    int              `json:"fired"` // how many of the faults have occurred
	Requests int              `json:"requests"`
	Seconds  float64          `json:"seconds"`
	Findings []oracle.Finding `json:"findings,omitempty"`
}

func (p *planReport) String() string { return p.Scenario + " / " + p.Faults }

// hasOccurred tells whether all that was to go wrong has.
func (p *planReport) hasOccurred() bool {
	return p.Fired > strings.Count(p.Faults, runner.FaultSeparator)
}

func newReport(o *options, operator string) *report {
	return &report{Operator: operator, Begun: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Seed: o.seed,
		Short: o.short, Starting: map[string]int{}}
}

// begin adds the report of a campaign.
func (r *report) begin(name, what string) *campaignReport {
	campaign := &campaignReport{Name: name, What: what, began: time.Now()}
	r.Campaigns = append(r.Campaigns, campaign)
	return campaign
}

// campaign returns the report of a campaign; nil if there is none.
func (r *report) campaign(name string) *campaignReport {
	index := slices.IndexFunc(r.Campaigns, func(c *campaignReport) bool { return c.Name == name })
	if index < 0 {
		return nil
	}
	return r.Campaigns[index]
}

// plans are all plans, with the campaign of each.
func (r *report) plans() iter.Seq2[*campaignReport, *planReport] {
	return func(yield func(*campaignReport, *planReport) bool) {
		for _, campaign := range r.Campaigns {
			for _, plan := range campaign.Plans {
				if !yield(campaign, plan) {
					return
				}
			}
		}
	}
}

func (r *campaignReport) add(plan *planReport) {
	r.Seconds = time.Since(r.began).Seconds()
	r.Plans = append(r.Plans, plan)
}

// counts returns in how many plans all went wrong that was to, and how many have findings.
func (r *campaignReport) counts() (fired, violations int) {
	for _, plan := range r.Plans {
		if plan.hasOccurred() {
			fired++
		}
		if len(plan.Findings) > 0 {
			violations++
		}
	}
	return fired, violations
}

func (r *campaignReport) perHour() int {
	if len(r.Plans) == 0 {
		return 0
	}
	return int(float64(len(r.Plans)) / r.Seconds * 3600)
}

func (r *campaignReport) summary() string {
	fired, violations := r.counts()
	return fmt.Sprintf("%d plans, %d with faults that occurred, %d with violations, %d plans/hour", len(r.Plans), fired,
		violations, r.perHour())
}

// finish sums up.
func (r *report) finish(s *suite) {
	r.Scenarios = len(s.scenarios)
	r.Used = slices.Sorted(maps.Keys(s.used))
	r.Seconds, r.Plans, r.Violations = 0, 0, 0
	for _, campaign := range r.Campaigns {
		_, violations := campaign.counts()
		r.Seconds += campaign.Seconds
		r.Plans += len(campaign.Plans)
		r.Violations += violations
		slices.SortFunc(campaign.Plans, func(a, b *planReport) int { return cmp.Compare(a.String(), b.String()) })
	}
}

// print prints what was played and found.
func (r *report) print(w io.Writer) error {
	page := &proof.Page{Title: r.page().Title, Settings: r.settings(), Claims: r.claims(),
		Sections: []proof.Section{{Title: "Campaigns", Tables: []proof.Table{r.campaignTable()}}}}
	var violations strings.Builder
	for _, plan := range r.plans() {
		for _, finding := range plan.Findings {
			text, _, _ := strings.Cut(finding.Text, "\n")
			fmt.Fprintf(&violations, "VIOLATION %s: %s: %s\n", plan, finding.Oracle, text)
		}
	}
	_, err := io.WriteString(w, violations.String())
	return errors.Join(page.Print(w), err)
}
