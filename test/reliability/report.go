package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
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
	IsWhole bool          `json:"isWhole"` // it has come to its end
	began   time.Time     // as if there had been no pause
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

// hasOccurred tells whether all that was to go wrong has.
func (p *planReport) hasOccurred() bool {
	return p.Fired > strings.Count(p.Faults, runner.FaultSeparator)
}

func newReport(o *options, operator string) *report {
	return &report{Operator: operator, Begun: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Seed: o.seed,
		Short:    o.short,
		Starting: map[string]int{}}
}

// resume takes over what a file has of the same operator, suite, seed and machine. Plans in which no fault has occurred
// are played again, and so are the references, which are not kept; whatever was found stays.
func (r *report) resume(path string) error {
	var before report
	if isThere, err := proof.Kept(path, &before); err != nil || !isThere {
		return err
	}
	if err := proof.SameOperator(path, before.Operator, r.Operator); err != nil {
		return err
	}
	if err := proof.SameSuite(path, before.Suite, r.Suite); err != nil {
		return err
	}
	if before.Seed != r.Seed || before.Short != r.Short || before.CPUs != r.CPUs {
		return fmt.Errorf("%s was found with another --seed or --short, or on another machine", path)
	}
	before.NotJudged = r.NotJudged
	*r = before
	for _, campaign := range r.Campaigns {
		known := len(campaign.Plans)
		campaign.Plans = slices.DeleteFunc(campaign.Plans, func(p *planReport) bool {
			return len(p.Findings) == 0 && (campaign.Name == referenceCampaign || p.Faults != "" && p.Fired == 0)
		})
		campaign.IsWhole = campaign.IsWhole && len(campaign.Plans) == known && campaign.Name != referenceCampaign
	}
	return nil
}

// begin returns the report of a campaign, with what was found before.
func (r *report) begin(name, what string) *campaignReport {
	campaign := r.campaign(name)
	if campaign == nil {
		campaign = &campaignReport{Name: name}
		r.Campaigns = append(r.Campaigns, campaign)
	}
	campaign.What, campaign.began = what, time.Now().Add(-time.Duration(campaign.Seconds*float64(time.Second)))
	return campaign
}

// has reports whether a plan was played before.
func (r *campaignReport) has(plan *runner.Plan) bool {
	return slices.ContainsFunc(r.Plans, func(p *planReport) bool {
		return p.Scenario == plan.Scenario.Name && p.Faults == plan.Faults()
	})
}

func (r *campaignReport) add(plan *planReport) {
	r.Seconds = time.Since(r.began).Seconds()
	r.Plans = append(r.Plans, plan)
}

// counts returns how many plans there were, in how many of them all went wrong that was to, and how many have findings.
func (r *campaignReport) counts() (plans, fired, violations int) {
	for _, plan := range r.Plans {
		plans++
		if plan.hasOccurred() {
			fired++
		}
		if len(plan.Findings) > 0 {
			violations++
		}
	}
	return plans, fired, violations
}

func (r *campaignReport) perHour() int {
	if len(r.Plans) == 0 {
		return 0
	}
	return int(float64(len(r.Plans)) / r.Seconds * 3600)
}

func (r *campaignReport) summary() string {
	plans, fired, violations := r.counts()
	return fmt.Sprintf("%d plans, %d with faults that occurred, %d with violations, %d plans/hour", plans, fired,
		violations, r.perHour())
}

// finish sums up.
func (r *report) finish(s *suite) {
	r.Scenarios = len(s.scenarios)
	r.Used = slices.Sorted(maps.Keys(s.used))
	r.Seconds, r.Plans, r.Violations = 0, 0, 0
	for _, campaign := range r.Campaigns {
		plans, _, violations := campaign.counts()
		r.Seconds += campaign.Seconds
		r.Plans += plans
		r.Violations += violations
		slices.SortFunc(campaign.Plans, func(a, b *planReport) int {
			return cmp.Or(strings.Compare(a.Scenario, b.Scenario), strings.Compare(a.Faults, b.Faults))
		})
	}
}

// print prints the tables.
func (r *report) print(w io.Writer) {
	var rows, rest strings.Builder
	rows.WriteString("campaign\tplans\tfaults occurred\tviolations\tplans/hour\tit shows\n")
	for _, campaign := range r.Campaigns {
		plans, fired, violations := campaign.counts()
		fmt.Fprintf(&rows, "%s\t%d\t%d\t%d\t%d\t%s\n", campaign.Name, plans, fired, violations, campaign.perHour(),
			campaign.What)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, rows.String())
	_ = table.Flush()
	fmt.Fprintf(&rest,
		"\n%d scenarios, %d writes that something can go wrong with, %d plans in %.0f s on %d CPUs: %.0f plans/hour; "+
			"seed %d\n",
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
