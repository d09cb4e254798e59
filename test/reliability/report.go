package main

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
)

// report is all results of a run.
type report struct {
	run       *proof.Run
	seed      uint64
	isShort   bool
	positions int // writes that a fault can hit
	campaigns []*campaignReport
	refused   []string // requests of operators that have all rights, by an API server that is ready
	rbac      *rbacReport
	restored  *proof.Table // nil if the campaign did not run, as extremes
	extremes  *proof.Table
	notJudged []string // what could not be tried, and why
}

// campaignReport is the results of one campaign.
type campaignReport struct {
	name, what string
	began      time.Time
	seconds    float64
	plans      []*planReport
}

// planReport is the results of one plan.
type planReport struct {
	scenario, faults string
	runs             int // how often it was played; findings are of the last run
	fired            int // how many of the faults have occurred
	findings         []oracle.Finding
	recovery         time.Duration // see oracle.Recovery
	recoveryBound    time.Duration
	hasRecovery      bool
	collected        time.Duration // see oracle.Collected
	hasCollected     bool
}

func (p *planReport) String() string { return strings.TrimSuffix(p.scenario+" / "+p.faults, " / ") }

// hasOccurred reports whether all faults have occurred.
func (p *planReport) hasOccurred() bool {
	return p.fired > strings.Count(p.faults, runner.FaultSeparator)
}

func newReport(o *options, run *proof.Run) *report {
	return &report{run: run, seed: o.seed, isShort: o.short}
}

// begin adds the report of a campaign.
func (r *report) begin(name, what string) *campaignReport {
	campaign := &campaignReport{name: name, what: what, began: time.Now()}
	r.campaigns = append(r.campaigns, campaign)
	return campaign
}

// campaign returns the report of a campaign; nil if there is none.
func (r *report) campaign(name string) *campaignReport {
	for _, campaign := range r.campaigns {
		if campaign.name == name {
			return campaign
		}
	}
	return nil
}

// plans returns all plans, with the campaign of each.
func (r *report) plans() iter.Seq2[*campaignReport, *planReport] {
	return func(yield func(*campaignReport, *planReport) bool) {
		for _, campaign := range r.campaigns {
			for _, plan := range campaign.plans {
				if !yield(campaign, plan) {
					return
				}
			}
		}
	}
}

// findings returns all findings, each with its plan.
func (r *report) findings() []oracle.Finding {
	var all []oracle.Finding
	for _, plan := range r.plans() {
		for _, finding := range plan.findings {
			finding.Text = fmt.Sprintf("(%s) %s", plan, finding.Text)
			all = append(all, finding)
		}
	}
	return all
}

// fails reports whether a plan of a campaign has findings.
func (r *report) fails(campaign string) bool {
	of := r.campaign(campaign)
	if of == nil {
		return false
	}
	_, violations := of.counts()
	return violations > 0
}

// violations returns how many plans have findings.
func (r *report) violations() int {
	violations := 0
	for _, campaign := range r.campaigns {
		_, more := campaign.counts()
		violations += more
	}
	return violations
}

// counts returns in how many plans all faults have occurred, and how many have findings.
func (r *campaignReport) counts() (fired, violations int) {
	for _, plan := range r.plans {
		if plan.hasOccurred() {
			fired++
		}
		if len(plan.findings) > 0 {
			violations++
		}
	}
	return fired, violations
}

// print prints the results, but for what only a whole run has.
func (r *report) print(w io.Writer) error {
	return r.summary().Print(w)
}

// page returns the page, with all violations ever found.
func (r *report) page(violations proof.Table) *proof.Page {
	page := r.summary()
	page.Sections = append(page.Sections, proof.Section{Title: "Every write, every class of faults",
		Tables: []proof.Table{r.matrix()}, Text: []string{"Plans of the " +
			"campaign singles by kind and fault, and in how many of them the fault occurred. The operator reacts to faults " +
			"of a class alike, so each write meets one of each class (`Classes` in test/reliability/proxy/rule.go), " +
			"which the seed chooses, but for the four plans that once found a bug. A fault does not occur where the write " +
			"was not made this time: progress is reported as time passes. So faults hit the writes that each of three " +
			"runs without faults has made. expire-watches has occurred if a watch was answered with 410, and age, " +
			"age-more and age-children if the old state was listed."}})
	if r.rbac != nil {
		needed := proof.Table{Columns: []string{"permission", "what fails without it"}}
		for _, permission := range slices.Sorted(maps.Keys(r.rbac.needed)) {
			needed.Rows = append(needed.Rows, []string{permission, strings.ReplaceAll(r.rbac.needed[permission], "|", "/")})
		}
		page.Sections = append(page.Sections, proof.Section{Title: "Permissions", Tables: []proof.Table{needed},
			Text: []string{"The first failure when each permission is taken away. A watch that is refused is logged before " +
				"anything is late, so that is the first failure there."}})
	}
	if r.restored != nil {
		page.Sections = append(page.Sections, proof.Section{Title: "A restored etcd", Tables: []proof.Table{*r.restored},
			Text: []string{"etcd is restored to an older state under a running operator, which is then restarted, as " +
				"docs/troubleshooting.md says. Without a restart, changes may or may not be carried out: watches that the API " +
				"server has closed without an error resume at versions that it has not reached, and whether a watch lists " +
				"again depends on timing. The second operator shows that, and is not judged."}})
	}
	if r.extremes != nil {
		page.Sections = append(page.Sections, proof.Section{Title: "Extreme sizes", Tables: []proof.Table{*r.extremes},
			Text: []string{"The operator has a CronJob with many Jobs, and then resources of almost the size that etcd " +
				"accepts. Requests are counted in the audit log; memory is the maximum resident set size."}})
	}
	page.Sections = append(page.Sections,
		proof.Section{Title: "Violations ever found", Tables: []proof.Table{violations}, Text: []string{"In the operator " +
			"without seeded bugs, whether it was wrong or the suite, before the end of this run. The suites add what they " +
			"find to [violations.yaml](violations.yaml)."}},
		proof.Section{Title: "What this does not judge, or not as sharply", Tables: []proof.Table{limits}})
	return page
}

// summary returns what any run has.
func (r *report) summary() *proof.Page {
	return &proof.Page{
		Name:  "reliability",
		Title: "What faults do to the operator",
		Text: []string{
			"A proxy between the operator and a real API server makes requests fail, kills or freezes the operator, and " +
				"serves it old states. Each plan is one scenario with faults, in a namespace of its own. Its outcome is " +
				"compared with that of the scenario without faults, and judged by oracles that read only the records of the " +
				"plan. `make reliability` makes this page; test/reliability/README.md describes it.",
			"The operator is the program that users run, with their defaults. In the campaigns " + pairsCampaign +
				" and " + stormsCampaign + " it has the race detector. It watches one " +
				"namespace, or two in about half of the scenarios, serves no metrics, runs a new image at once " +
				"(`--image-delay=0`), and takes part in an election only where the leader is frozen or cut off. In the " +
				"campaigns everywhere, restored and extremes it watches all namespaces. The comparison leaves out what the " +
				"server generates, and how Kubernetes' own controllers report their work " +
				"(test/reliability/history/normal.go). The operator's hash of an applied object, and times that mean nothing " +
				"to the scenario, have to be there with any value.",
		},
		Settings: append(r.run.Settings(),
			proof.Setting{Name: "seed", Value: fmt.Sprint(r.seed)},
			proof.Setting{Name: "form", Value: map[bool]string{true: "short", false: "full"}[r.isShort]}),
		Claims: r.claims(),
		Sections: []proof.Section{
			{Title: "Campaigns", Tables: []proof.Table{r.campaignTable()}, Text: []string{"Faults count as occurred in a " +
				"plan in which every one of its faults has: of two, the first may prevent the write of the second, and a " +
				"storm may hit nothing. A plan in which no fault has occurred is played " + fmt.Sprintf("up to %d times ", tries) +
				"in all, except for storms and outages; one with a violation is played once. An outage is for many plans; it " +
				"has occurred in the one at whose write it was. The " +
				"campaign rbac is one plan, in which each permission is taken away in turn."}},
			{Title: "Violations of this run", Tables: []proof.Table{r.violationTable()}, Text: []string{"There are none " +
				"if the table is empty."}},
			{Title: "Recovery", Tables: []proof.Table{r.recoveryTable(), r.collectorTable()}, Text: []string{
				"How much later than without faults everything had settled, in seconds, counted from the end of the last fault " +
					"of a step: when the request was answered, or the API server or etcd was ready again. The singles by fault, " +
					"the others by campaign. The " +
					"operator leaves the children of a deleted resource to Kubernetes' garbage collector, which has to recover from " +
					"an outage, too: its times count from the end of the outage, or from the deletion if that was later. In " +
					"plans that wait for it, the bound is for the operator's last write."}},
		},
	}
}

// limits are what the suite cannot find.
var limits = proof.Table{
	Columns: []string{"what", "how far it is judged"},
	Rows: [][]string{
		{"writes that only some runs of a scenario make, such as one more report of progress",
			"not tried one by one; storms hit them by chance"},
		{"scenarios with a wait of half a minute in which nothing may be written (foo-hidden-create)",
			"without faults and in storms"},
		{"outages where watches are hidden", "not tried"},
		{"upgrades of the operator", "they write nothing, so no single fault hits them; storms hit their reads"},
		{"reads that fail", "one live read of each sort of each scenario; in storms; and where watches are paused, closed " +
			"or expired and old states are served"},
		{"data races", "in pairs and storms, and by `make contract` and `make reliability-short`"},
		{"how long the operator takes", "by the bounds of the oracle recovery; `make bench` measures times"},
		{"what a status says of the present",
			"it must have been true at most 5 s before, or as much longer as a fault delayed something; after a frozen or " +
				"cut off leader, an outage, an old state, or a failed list or watch, as in most storms, it must ever have been"},
		{"a status that says less than is true, such as fewer pods than are ready",
			"by the last one: the next report of progress may be a minute away"},
		{"too many events", "no more than the status changes that they report. For missed times, each write or live read " +
			"that fails allows one more, which in storms is many"},
		{"too few events", "in plans without faults, and those of missed times after faults that let no event be lost"},
		{"outages", "one write of each sort of each kind, and of each scenario, meets one of three in turn: the API server " +
			"is killed before it or after it, or etcd; the load beside them is of Foos only, and is judged by its end, by the " +
			"number of Deployments and by 5 s of rest"},
		{"a leader that is frozen or cut off", "each at one write of each sort of each kind, and of half of the scenarios; " +
			"not with upgrades, and where the operator is away or something is hidden for a while"},
		{"late writes of a former leader", "by their effect: there must be none"},
		{"goroutines of connections", "not counted: a broken connection is closed in its own time; those that watch may " +
			"be as many as resources that are watched"},
	},
}

func (r *report) campaignTable() proof.Table {
	table := proof.Table{Columns: []string{"campaign", "it shows", "plans", "runs", "faults occurred", "violations",
		"minutes"}}
	for _, c := range r.campaigns {
		fired, violations := c.counts()
		runs := 0
		for _, plan := range c.plans {
			runs += plan.runs
		}
		table.Rows = append(table.Rows, []string{c.name, c.what, fmt.Sprint(len(c.plans)), fmt.Sprint(runs),
			fmt.Sprint(fired), fmt.Sprint(violations), fmt.Sprintf("%.0f", c.seconds/60)})
	}
	return table
}

// violationTable has the first line of every finding.
func (r *report) violationTable() proof.Table {
	table := proof.Table{Columns: []string{"campaign", "plan", "oracle", "what was found"}}
	for campaign, plan := range r.plans() {
		for _, finding := range plan.findings {
			text, _, _ := strings.Cut(finding.Text, "\n")
			table.Rows = append(table.Rows, []string{campaign.name, plan.String(), finding.Oracle, text})
		}
	}
	return table
}

// collectorTable has how long the garbage collector has needed in each plan with an outage.
func (r *report) collectorTable() proof.Table {
	table := proof.Table{Title: "How long after an outage the garbage collector deleted children of deleted resources, " +
		"the last one", Columns: []string{"plan", "s"}}
	for _, plan := range r.plans() {
		if plan.hasCollected {
			table.Rows = append(table.Rows, []string{plan.String(), fmt.Sprintf("%.1f", plan.collected.Seconds())})
		}
	}
	return table
}

func (r *report) claims() []proof.Claim {
	plans, faultless, written, judged, long := 0, 0, 0, 0, 0
	for campaign, plan := range r.plans() {
		plans++
		if campaign.name == rbacCampaign || plan.faults == loadFaults {
			continue
		}
		judged++
		if plan.faults == "" {
			faultless++
		}
		if campaign.name == restCampaign {
			long++
		}
		if slices.ContainsFunc(plan.findings, func(f oracle.Finding) bool { return f.Oracle == oracle.Rest }) {
			written++
		}
	}
	rest := proof.Claim{What: "plans with a write or a read at rest, over a restart, or while every object is " +
		"reconciled again", Bar: "0", Found: fmt.Sprintf("%d of %d", written, judged), Verdict: proof.Judge(written == 0)}
	if long > 0 {
		rest.Note = fmt.Sprintf("in %d of them, half a minute of rest, and another one of reconciling; else 2 s", long)
	}
	if judged == 0 {
		rest.Verdict, rest.Note = proof.NotJudged, "no plan ran"
	}
	violations := proof.Claim{What: "plans with a violation", Bar: "0",
		Found:   fmt.Sprintf("%d of %d", r.violations(), plans),
		Verdict: proof.Judge(r.violations() == 0), Note: fmt.Sprintf("%d of all plans have no fault", faultless)}
	claims := append([]proof.Claim{violations, r.coverage(), rest}, r.claimRBAC()...)
	for _, what := range r.notJudged {
		claims = append(claims, proof.Claim{What: what, Verdict: proof.NotJudged})
	}
	return append(claims, r.run.Claim())
}

// claimRBAC compares what the operator may do with what it needs.
func (r *report) claimRBAC() []proof.Claim {
	if r.rbac == nil {
		return nil
	}
	needed := proof.Claim{What: "permissions of the ClusterRole " + managerRole +
		" that are needed, shown by taking each away", Bar: "all",
		Found:   fmt.Sprintf("%d of %d", len(r.rbac.needed), len(r.rbac.needed)+len(r.rbac.unneeded)),
		Verdict: proof.Judge(len(r.rbac.unneeded) == 0),
		Note: "with all of them, the same scenarios pass; test/contract takes away those for leader election and metrics, " +
			"and compares what is granted with what is used"}
	if len(r.rbac.control) > 0 {
		needed.Verdict, needed.Note = proof.NotJudged, "with all of them, too: "+strings.Join(r.rbac.control, ", ")
	}
	return []proof.Claim{needed, {What: "requests refused to the operator", Bar: "0", Found: fmt.Sprint(len(r.refused)),
		Verdict: proof.Judge(len(r.refused) == 0),
		Note:    "but for those of an API server that has just started, and knows no roles, or not our kinds, yet"}}
}

// coverage is how many writes were tried with a fault of every class.
func (r *report) coverage() proof.Claim {
	claim := proof.Claim{What: "writes that every run of a scenario makes, tried with a fault of every class",
		Bar: "100 %", Verdict: proof.NotJudged, Found: fmt.Sprintf("%d writes", r.positions), Note: "only some were tried"}
	singles := r.campaign(singlesCampaign)
	if singles == nil {
		return claim
	}
	var missed []string
	for _, plan := range singles.plans {
		if !plan.hasOccurred() {
			missed = append(missed, plan.String())
		}
	}
	plans := len(singles.plans)
	claim.Found = fmt.Sprintf("%d writes, %d plans, of which the fault occurred in %d", r.positions, plans,
		plans-len(missed))
	claim.Verdict, claim.Note = proof.Judge(len(missed) == 0 && plans == r.positions*len(proxy.Classes)), ""
	if len(missed) > 0 {
		claim.Note = fmt.Sprintf("the fault did not occur in %d runs of: %s", tries, strings.Join(missed, "; "))
	}
	return claim
}

// recoveryTable has the distribution of recovery times of plans with one fault, by fault, and of the other campaigns.
func (r *report) recoveryTable() proof.Table {
	table := proof.Table{
		Columns: []string{"fault or campaign", "plans", "median", "95 %", "longest", "bound", "longest in"}}
	seconds, longest := map[string][]float64{}, map[string]*planReport{}
	bounds := map[string][]float64{}
	for campaign, plan := range r.plans() {
		if !plan.hasRecovery {
			continue
		}
		what := campaign.name
		if _, fault, isSingle := strings.Cut(plan.faults, ": "); isSingle && what == singlesCampaign {
			what = fault
		}
		seconds[what] = append(seconds[what], plan.recovery.Seconds())
		bounds[what] = append(bounds[what], plan.recoveryBound.Seconds())
		if longest[what] == nil || longest[what].recovery < plan.recovery {
			longest[what] = plan
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seconds)) {
		sorted := slices.Sorted(slices.Values(seconds[what]))
		at := func(hundredths int) string { return fmt.Sprintf("%.1f", measure.Percentile(sorted, hundredths)) }
		table.Rows = append(table.Rows, []string{what, fmt.Sprint(len(sorted)), at(50), at(95), at(100),
			rangeOf(bounds[what]), longest[what].String()})
	}
	return table
}

// rangeOf returns the least and the most of numbers.
func rangeOf(numbers []float64) string {
	least, most := slices.Min(numbers), slices.Max(numbers)
	if least == most {
		return fmt.Sprintf("%.0f", least)
	}
	return fmt.Sprintf("%.0f to %.0f", least, most)
}

// matrix has the plans of the campaign singles, by fault and kind.
func (r *report) matrix() proof.Table {
	table := proof.Table{Columns: slices.Concat([]string{"fault"}, kindNames(), []string{"violations"})}
	singles := r.campaign(singlesCampaign)
	if singles == nil {
		return table
	}
	for _, fault := range proxy.Faults {
		count := func(kind string) (tried, fired, violations int) {
			cell := campaignReport{}
			for _, plan := range singles.plans {
				if strings.HasPrefix(plan.scenario, kind) && strings.HasSuffix(plan.faults, ": "+fault.String()) {
					cell.plans = append(cell.plans, plan)
				}
			}
			fired, violations = cell.counts()
			return len(cell.plans), fired, violations
		}
		row := []string{fault.String()}
		for _, kind := range kindNames() {
			tried, fired, _ := count(kind + "-")
			row = append(row, fmt.Sprintf("%d of %d", fired, tried))
		}
		if all, _, violations := count(""); all > 0 {
			table.Rows = append(table.Rows, append(row, fmt.Sprint(violations)))
		}
	}
	return table
}
