package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// page returns the report for people.
func (r *report) page() *proof.Page {
	page := &proof.Page{
		Name:  "reliability",
		Title: "What faults do to the operator",
		Text: []string{
			"A proxy between the operator and a real API server has requests go wrong, and the operator is killed, frozen, " +
				"and shown an old world. Each plan is one scenario with what is to go wrong in it, in a namespace of its own. " +
				"What comes of it is compared with what comes of the scenario without faults, and judged by oracles that see " +
				"nothing but what was recorded. `make reliability` makes this page; test/README.md tells how.",
			"The operator is the program that users run, with their defaults, but with the race detector; it looks at one " +
				"namespace, serves no metrics, runs another image at once (`--image-delay=0`), and takes part in an election " +
				"only where the leader is frozen or cut off. Left out of what is compared is what the server makes, and how " +
				"Kubernetes' own controllers tell of their work (test/reliability/history/normal.go). The operator's hash of " +
				"what it has applied, and times that mean nothing to the scenario, have to be there, whatever they are.",
		},
		Settings: r.settings(),
		Claims:   r.claims(),
		Sections: []proof.Section{
			{Title: "Campaigns", Tables: []proof.Table{r.campaignTable()}, Text: []string{"Faults are counted as occurred in " +
				"a plan in which every one of its faults has: of two, the first may keep the write of the second from being " +
				"made, and a storm may hit nothing. An outage is for many plans; it has occurred in the one at whose own write " +
				"it was. The campaign rbac is one plan, in which each permission is taken away in turn."}},
			{Title: "Every write, every fault", Tables: []proof.Table{r.matrix()}, Text: []string{"Plans of the campaign " +
				"singles by kind and fault, and in how many of them the fault occurred. A fault does not occur where the write " +
				"was not made this time: progress is told of as time passes. So what is tried are writes that each of three " +
				"runs without faults has made. expire-watches has occurred if a watch was answered with 410, and age and " +
				"age-more if the old world was listed."}},
		},
	}
	if r.RBAC != nil {
		needed := proof.Table{Columns: []string{"permission", "what goes wrong without it"}}
		for _, permission := range slices.Sorted(maps.Keys(r.RBAC.Needed)) {
			needed.Rows = append(needed.Rows, []string{permission, strings.ReplaceAll(r.RBAC.Needed[permission], "|", "/")})
		}
		page.Sections = append(page.Sections, proof.Section{Title: "Permissions", Tables: []proof.Table{needed},
			Text: []string{"What comes first when each permission is taken away. What may not be watched is told in the log " +
				"before anything is late, so that is what comes first there."}})
	}
	page.Sections = append(page.Sections,
		proof.Section{Title: "What this does not judge, or not as sharply", Tables: []proof.Table{limits}})
	return page
}

// settings are where and by what it was found.
func (r *report) settings() []proof.Setting {
	return []proof.Setting{proof.OperatorSetting(r.Operator), proof.SuiteSetting(r.Suite),
		{Name: "begun", Value: r.Begun.Format("2006-01-02 15:04 MST")},
		{Name: "CPUs", Value: fmt.Sprint(r.CPUs)},
		{Name: "seed", Value: fmt.Sprint(r.Seed)},
		{Name: "form", Value: map[bool]string{true: "short", false: "full"}[r.Short]}}
}

// limits are what the suite cannot find.
var limits = proof.Table{
	Columns: []string{"what", "how far it is judged"},
	Rows: [][]string{
		{"writes that only some runs of a scenario make, such as one more report of progress",
			"not tried one by one; the storms hit them by chance"},
		{"upgrades of the operator", "they write nothing, so no fault is tried at a write of theirs; storms hit their reads"},
		{"reads that go wrong",
			"in storms, and where watches are held, closed or expired and old worlds are served; not one by one"},
		{"how long it takes to do what has to be done",
			"a minute and 40 s at most, and in outages 5 min, as Kubernetes' garbage collector was seen to take two for what " +
				"the operator has nothing to do with; times are for `make bench`"},
		{"what a status says of the present",
			"it must have been true 5 s before at the latest, or as much longer as something was held back; after a leader " +
				"stood still or was cut off, an outage, an old world, or a list or watch that went wrong, as in most storms, " +
				"that it ever was is enough"},
		{"a status that says less than is true, such as fewer pods than are ready",
			"by how it ends: the next report of progress may be a minute away"},
		{"too many events",
			"each write that goes wrong, and each question about one resource, may be one more of any reason, which in " +
				"storms is many; where names are taken for a moment, two more of any reason are taken for news"},
		{"outages", "each write meets one of three in turn: the API server is killed before it or after it, or etcd; the " +
			"load beside them is of Foos only, and is judged by its end, by the number of Deployments and by 5 s of rest"},
		{"a leader that is cut off", "at one write of each scenario; neither that nor one that stands still is tried with " +
			"upgrades and where the operator is away for a while"},
		{"late writes of a former leader", "by what comes of them: there must be nothing"},
		{"goroutines of connections", "not counted: a broken connection is given up in its own time; those that watch may " +
			"be as many as resources that are watched"},
	},
}

// campaignTable has a row for each campaign.
func (r *report) campaignTable() proof.Table {
	table := proof.Table{Columns: []string{"campaign", "it shows", "plans", "faults occurred", "violations", "plans/hour",
		"minutes"}}
	for _, c := range r.Campaigns {
		fired, violations := c.counts()
		table.Rows = append(table.Rows, []string{c.Name, c.What, fmt.Sprint(len(c.Plans)), fmt.Sprint(fired),
			fmt.Sprint(violations), fmt.Sprint(c.perHour()), fmt.Sprintf("%.0f", c.Seconds/60)})
	}
	return table
}

// claims are what is held against the bars.
func (r *report) claims() []proof.Claim {
	faultless, written, judged, long := 0, 0, 0, 0
	for campaign, plan := range r.plans() {
		if campaign.Name == rbacCampaign || plan.Faults == loadFaults {
			continue
		}
		judged++
		if plan.Faults == "" {
			faultless++
		}
		if campaign.Name == restCampaign {
			long++
		}
		if slices.ContainsFunc(plan.Findings, func(f oracle.Finding) bool { return f.Oracle == oracle.Rest }) {
			written++
		}
	}
	rest := proof.Claim{What: "plans after which something is written at rest, over a restart, or while everything is " +
		"looked at again", Bar: "0", Found: fmt.Sprintf("%d of %d", written, judged), Verdict: proof.Judge(written == 0)}
	if long > 0 {
		rest.Note = fmt.Sprintf("in %d of them, half a minute of rest, and another one of looks; else 2 s", long)
	}
	if judged == 0 {
		rest.Verdict, rest.Note = proof.NotJudged, "nothing was played"
	}
	violations := proof.Claim{What: "plans with a violation", Bar: "0",
		Found: fmt.Sprintf("%d of %d", r.Violations, r.Plans), Verdict: proof.Judge(r.Violations == 0),
		Note: fmt.Sprintf("in %d of all plans, nothing was to go wrong", faultless)}
	claims := append([]proof.Claim{violations, r.coverage(), rest}, r.claimRBAC()...)
	for _, what := range r.NotJudged {
		claims = append(claims, proof.Claim{What: what, Verdict: proof.NotJudged})
	}
	return claims
}

// claimRBAC holds what the operator may do against what it needs.
func (r *report) claimRBAC() []proof.Claim {
	if r.RBAC == nil {
		return nil
	}
	needed := proof.Claim{What: "permissions of the ClusterRole " + managerRole +
		" that are needed, shown by taking each away", Bar: "all",
		Found:   fmt.Sprintf("%d of %d", len(r.RBAC.Needed), len(r.RBAC.Needed)+len(r.RBAC.Unneeded)),
		Verdict: proof.Judge(len(r.RBAC.Unneeded) == 0),
		Note: "with all of them, nothing goes wrong in the same scenarios; those to lead and to serve metrics are taken " +
			"away in test/contract, which also compares what is granted with what is used"}
	if len(r.RBAC.Control) > 0 {
		needed.Verdict, needed.Note = proof.NotJudged,
			"something goes wrong with all of them, too: "+strings.Join(r.RBAC.Control, ", ")
	}
	refused := proof.Claim{What: "requests refused to the operator", Bar: "0", Found: fmt.Sprint(len(r.Refused)),
		Verdict: proof.Judge(len(r.Refused) == 0)}
	starting := 0
	for _, count := range r.Starting {
		starting += count
	}
	if starting > 0 {
		refused.Note = fmt.Sprintf("not counted are %d that an API server refused which had just been started, and knew no "+
			"roles, or not our kinds, yet", starting)
	}
	return []proof.Claim{needed, refused}
}

// coverage is how many writes were tried with every fault.
func (r *report) coverage() proof.Claim {
	claim := proof.Claim{What: "writes that every run of a scenario makes, tried with every fault", Bar: "100 %",
		Verdict: proof.NotJudged, Found: fmt.Sprintf("%d writes", r.Positions), Note: "only some were tried"}
	singles := r.campaign("singles")
	if singles == nil || r.Short {
		return claim
	}
	var missed []string
	for _, plan := range singles.Plans {
		if !plan.hasOccurred() {
			missed = append(missed, plan.String())
		}
	}
	plans := len(singles.Plans)
	claim.Found = fmt.Sprintf("%d writes, %d plans, of which the fault occurred in %d", r.Positions, plans,
		plans-len(missed))
	claim.Verdict, claim.Note = proof.Judge(len(missed) == 0 && plans == r.Positions*len(proxy.Faults)), ""
	if len(missed) > 0 {
		claim.Note = fmt.Sprintf("nothing went wrong in %d tries of: %s", tries, strings.Join(missed, "; "))
	}
	return claim
}

// matrix are the plans of the campaign singles, by fault and kind.
func (r *report) matrix() proof.Table {
	names := make([]string, 0, len(kinds.All))
	for _, k := range kinds.All {
		names = append(names, k.Controller())
	}
	table := proof.Table{Columns: slices.Concat([]string{"fault"}, names, []string{"violations"})}
	singles := r.campaign("singles")
	if singles == nil {
		return table
	}
	cells := map[string]*campaignReport{} // by fault, and by fault and kind
	for _, plan := range singles.Plans {
		_, fault, _ := strings.Cut(plan.Faults, ": ")
		kind, _, _ := strings.Cut(plan.Scenario, "-")
		for _, cell := range []string{fault, fault + " " + kind} {
			if cells[cell] == nil {
				cells[cell] = &campaignReport{}
			}
			cells[cell].Plans = append(cells[cell].Plans, plan)
		}
	}
	for _, fault := range slices.Sorted(maps.Keys(cells)) {
		if strings.Contains(fault, " ") {
			continue
		}
		row := []string{fault}
		for _, kind := range names {
			cell := cells[fault+" "+kind]
			if cell == nil {
				cell = &campaignReport{}
			}
			fired, _ := cell.counts()
			row = append(row, fmt.Sprintf("%d of %d", fired, len(cell.Plans)))
		}
		_, violations := cells[fault].counts()
		table.Rows = append(table.Rows, append(row, fmt.Sprint(violations)))
	}
	return table
}
