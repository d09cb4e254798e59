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
	own        map[string]string // what plays one campaign alone, by its name, as proof.Fingerprint says it
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
	Used       []string          `json:"used"`    // permissions, as "verb group/resource"
	Refused    []string          `json:"refused"` // requests of operators that have all rights, by an API server that runs
	// Starting are those that an API server has refused before it was ready, by verb and resource: it knew no roles, or not our kinds, yet.
	Starting map[string]int `json:"refusedBeforeReady"`
	RBAC     *rbacReport    `json:"rbac,omitempty"`
	// NotJudged is what could not be tried, and why.
	NotJudged []string `json:"notJudged,omitempty"`
}

// campaignReport is what one campaign has found.
type campaignReport struct {
	Name    string        `json:"name"`
	What    string        `json:"what"`
	Own     string        `json:"own,omitempty"` // what plays it and no other, as proof.Fingerprint says it; empty for nothing
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
	// Before is what was found when it was played before, in a run that this one goes on with.
	Before []oracle.Finding `json:"before,omitempty"`
	isOld  bool             // it is from before, and to be played again
}

// hasOccurred tells whether all that was to go wrong has.
func (p *planReport) hasOccurred() bool {
	return p.Fired > strings.Count(p.Faults, runner.FaultSeparator)
}

// isViolated tells whether anything was found, however often it was played.
func (p *planReport) isViolated() bool { return len(p.Findings)+len(p.Before) > 0 }

func newReport(o *options, operator string) *report {
	return &report{Operator: operator, Begun: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), Seed: o.seed, Short: o.short,
		Starting: map[string]int{}}
}

// outagesCampaign is the name of the campaign of outages.
const outagesCampaign = "outages"

// ownSources are what plays one campaign and no other, below the repository's root. When it changes, that campaign begins anew, and what
// the others have found stays; see [report.anew].
var ownSources = map[string][]string{
	outagesCampaign: {"test/reliability/load.go", "test/reliability/outages.go"},
	rbacCampaign:    {"test/reliability/rbac.go"},
}

// identify notes by what things are found, in the tree below a root.
func (r *report) identify(root string) (err error) {
	if r.Suite, err = proof.Suite(root); err != nil {
		return err
	}
	r.own = map[string]string{}
	for campaign, sources := range ownSources {
		if r.own[campaign], err = proof.Fingerprint(root, sources, func(string) bool { return false }); err != nil {
			return err
		}
	}
	return nil
}

// resume takes over what a file has. Plans in which something was found are to be played again, and what was found stays; and so are
// those in which no fault has occurred. Of two, the first may keep the second from ever occurring, so one is enough.
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
	r.Begun, r.Positions, r.Used, r.Refused, r.Starting, r.RBAC = before.Begun, before.Positions, before.Used, before.Refused, before.Starting, before.RBAC
	anew := r.anew(&before)
	for _, campaign := range before.Campaigns {
		campaign.resume(slices.Contains(anew, campaign.Name))
		r.Campaigns = append(r.Campaigns, campaign)
	}
	if slices.Contains(anew, outagesCampaign) {
		r.Starting = map[string]int{} // no API server was started otherwise
	}
	if slices.Contains(anew, rbacCampaign) {
		r.RBAC = nil
	}
	return nil
}

// anew returns which campaigns begin anew: the references, those that other code plays now, and with the outages the permissions, which
// judge what all have used.
func (r *report) anew(before *report) []string {
	names := []string{referenceCampaign}
	for _, campaign := range before.Campaigns {
		if campaign.Own == r.own[campaign.Name] {
			continue
		}
		names = append(names, campaign.Name)
		if campaign.Name == outagesCampaign {
			names = append(names, rbacCampaign)
		}
	}
	return names
}

// resume says which plans are to be played again: all of a campaign that begins anew, of which only what was found stays, and the operator
// that is kept busy as long as there are outages.
func (r *campaignReport) resume(isAnew bool) {
	if isAnew {
		r.Plans = slices.DeleteFunc(r.Plans, func(p *planReport) bool { return !p.isViolated() })
		r.IsWhole, r.Seconds = false, 0
	}
	for _, plan := range r.Plans {
		plan.isOld = isAnew || len(plan.Findings) > 0 || plan.Faults != "" && plan.Fired == 0
		r.IsWhole = r.IsWhole && !plan.isOld
	}
	for _, plan := range r.Plans {
		plan.isOld = plan.isOld || plan.Faults == loadFaults && !r.IsWhole
	}
}

// begin returns the report of a campaign, with what was found before, and has its time go on.
func (r *report) begin(name, what string) *campaignReport {
	campaign := r.campaign(name)
	if campaign == nil {
		campaign = &campaignReport{Name: name}
		r.Campaigns = append(r.Campaigns, campaign)
	}
	campaign.What, campaign.Own, campaign.began = what, r.own[name], time.Now().Add(-time.Duration(campaign.Seconds*float64(time.Second)))
	return campaign
}

// has tells whether a plan was played before, and is not to be played again.
func (r *campaignReport) has(plan *runner.Plan) bool {
	return slices.ContainsFunc(r.Plans, func(p *planReport) bool {
		return !p.isOld && p.Scenario == plan.Scenario.Name && p.Faults == plan.Faults()
	})
}

// playAgain has plans that were played before be played once more.
func (r *campaignReport) playAgain(plans []*runner.Plan) {
	for _, plan := range plans {
		for _, played := range r.Plans {
			played.isOld = played.isOld || played.Scenario == plan.Scenario.Name && played.Faults == plan.Faults()
		}
	}
}

// add adds what a plan has found. It takes the place of what that has found before.
func (r *campaignReport) add(plan *planReport) {
	r.Seconds = time.Since(r.began).Seconds()
	old := slices.IndexFunc(r.Plans, func(p *planReport) bool { return p.isOld && p.Scenario == plan.Scenario && p.Faults == plan.Faults })
	if old < 0 {
		r.Plans = append(r.Plans, plan)
		return
	}
	plan.Before = slices.Concat(r.Plans[old].Before, r.Plans[old].Findings)
	r.Plans[old] = plan
}

// counts returns how many plans there were, in how many of them all went wrong that was to, and how many have findings.
func (r *campaignReport) counts() (plans, fired, violations int) {
	for _, plan := range r.Plans {
		plans++
		if plan.hasOccurred() {
			fired++
		}
		if plan.isViolated() {
			violations++
		}
	}
	return plans, fired, violations
}

// unrepeated returns how many plans were violated, and were not when they were played again.
func (r *report) unrepeated() int {
	count := 0
	for _, campaign := range r.Campaigns {
		for _, plan := range campaign.Plans {
			if len(plan.Findings) == 0 && plan.isViolated() {
				count++
			}
		}
	}
	return count
}

func (r *campaignReport) perHour() int {
	if len(r.Plans) == 0 {
		return 0
	}
	return int(float64(len(r.Plans)) / r.Seconds * 3600)
}

func (r *campaignReport) summary() string {
	plans, fired, violations := r.counts()
	return fmt.Sprintf("%d plans, %d with faults that occurred, %d with violations, %d plans/hour", plans, fired, violations, r.perHour())
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
			told := func(what string, findings []oracle.Finding) {
				for _, finding := range findings {
					text, _, _ := strings.Cut(finding.Text, "\n")
					fmt.Fprintf(&rest, "%s %s / %s: %s: %s\n", what, plan.Scenario, plan.Faults, finding.Oracle, text)
				}
			}
			told("VIOLATION", plan.Findings)
			told("VIOLATION, when it was played before,", plan.Before)
		}
	}
	fmt.Fprint(w, rest.String())
}
