package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/proxy"
)

// published is the highest rate that we have found published: Sieve's (OSDI 2022), 2,380 plans in 316.6 machine-hours.
const published = 7.5

// page returns the report for people.
func (r *report) page() *proof.Page {
	page := &proof.Page{
		Name:  "reliability",
		Title: "What faults do to the operator",
		Text: []string{
			"A proxy between the operator and a real API server has requests go wrong, and the operator is killed, frozen, and shown an old " +
				"world. Each plan is one scenario with what is to go wrong in it, in a namespace of its own. What comes of it is compared with " +
				"what comes of the scenario without faults, and judged by oracles that see nothing but what was recorded. " +
				"`make reliability` makes this page; test/README.md tells how.",
			"The operator is the program that users run, with their defaults, but with the race detector; it looks at one namespace, serves no metrics, runs another " +
				"image at once, and takes part in an election only where the leader is frozen or cut off. Left out of " +
				"what is compared is what the server makes, and how Kubernetes' own controllers tell of their work (test/reliability/history/normal.go); " +
				"of the operator's hash of what it has applied, and of times that mean nothing to the scenario, it counts that they are there.",
		},
		Settings: []proof.Setting{
			{Name: "operator", Value: r.Operator},
			{Name: "begun", Value: r.Begun.Format("2006-01-02 15:04 MST")},
			{Name: "CPUs", Value: fmt.Sprint(r.CPUs)},
			{Name: "seed", Value: fmt.Sprint(r.Seed)},
			{Name: "form", Value: map[bool]string{true: "short", false: "full"}[r.Short]},
		},
		Claims: r.claims(),
		Data:   r,
	}
	campaigns := proof.Table{Columns: []string{"campaign", "it shows", "plans", "faults occurred", "violations", "plans/hour", "minutes"}}
	for _, c := range r.Campaigns {
		plans, fired, violations := c.counts()
		campaigns.Rows = append(campaigns.Rows, []string{c.Name, c.What, fmt.Sprint(plans), fmt.Sprint(fired), fmt.Sprint(violations),
			fmt.Sprint(c.perHour()), fmt.Sprintf("%.0f", c.Seconds/60)})
	}
	page.Sections = append(page.Sections,
		proof.Section{
			Title: "Campaigns",
			Text: []string{"Faults have occurred where all that a plan has did: of two, the first may keep the write of the second from being made. An outage is for " +
				"many plans; it has occurred where it was at the plan's own write."},
			Tables: []proof.Table{campaigns}, Plots: []proof.Plot{r.ratePlot()}},
		proof.Section{
			Title: "Every write, every fault",
			Text: []string{"Plans of the campaign singles by kind and fault, and in how many of them the fault occurred. A fault does not occur where " +
				"the write was not made this time: progress is told of as time passes. So what is tried are writes that each of three runs without " +
				"faults has made; where a run went on that was cut off, likewise those of its references."},
			Tables: []proof.Table{r.matrix()},
			Plots:  r.timePlots(),
		})
	if r.RBAC != nil {
		needed := proof.Table{Columns: []string{"permission", "what goes wrong without it"}}
		for _, permission := range slices.Sorted(maps.Keys(r.RBAC.Needed)) {
			needed.Rows = append(needed.Rows, []string{permission, strings.ReplaceAll(r.RBAC.Needed[permission], "|", "/")})
		}
		page.Sections = append(page.Sections, proof.Section{Title: "Permissions", Tables: []proof.Table{needed},
			Text: []string{"What comes first when each permission is taken away. What may not be watched is told in the log before anything is late."}})
	}
	return page
}

// ratePlot compares how many plans there are in an hour.
func (r *report) ratePlot() proof.Plot {
	return proof.Plot{
		Name: "rate", Title: "Plans in an hour of one machine", X: proof.Axis{Label: "plans", Log: true},
		Bars: []proof.Bar{{Name: "this suite", Value: float64(r.Plans) / r.Seconds * 3600}, {Name: "Sieve (OSDI 2022)", Value: published}},
	}
}

// timePlots shows how long a plan of each fault took; nothing if none was played.
func (r *report) timePlots() []proof.Plot {
	singles := r.campaign("singles")
	if singles == nil || len(singles.Plans) == 0 {
		return nil
	}
	seconds := map[string][]float64{}
	for _, plan := range singles.Plans {
		_, fault, _ := strings.Cut(plan.Faults, ": ")
		seconds[fault] = append(seconds[fault], plan.Seconds)
	}
	plot := proof.Plot{Name: "seconds", Title: "From the start of a plan to its end, by fault: the median, and the half of all in the middle", X: proof.Axis{Label: "s"}}
	for _, fault := range slices.Sorted(maps.Keys(seconds)) {
		sorted := slices.Sorted(slices.Values(seconds[fault]))
		plot.Bars = append(plot.Bars, proof.Bar{
			Name: fault, Value: measure.Median(sorted), Low: sorted[len(sorted)/4], High: sorted[len(sorted)*3/4],
		})
	}
	return []proof.Plot{plot}
}

// claims are what is held against the bars.
func (r *report) claims() []proof.Claim {
	perHour := float64(r.Plans) / r.Seconds * 3600
	violations := proof.Claim{What: "plans with a violation", Bar: "0", Found: fmt.Sprintf("%d of %d", r.Violations, r.Plans), Verdict: proof.Judge(r.Violations == 0)}
	if unrepeated := r.unrepeated(); unrepeated > 0 {
		violations.Note = fmt.Sprintf("%d of them without one when they were played again", unrepeated)
	} else if faultless := r.faultless(); faultless > 0 {
		violations.Note = fmt.Sprintf("in %d of all plans, nothing was to go wrong", faultless)
	}
	if r.Violations == 0 && slices.ContainsFunc(r.Campaigns, func(c *campaignReport) bool { return !c.IsWhole }) {
		violations.Verdict, violations.Note = proof.NotJudged, "not all were played"
	}
	claims := []proof.Claim{
		violations,
		{What: "plans in an hour", Bar: "1,000", Found: fmt.Sprintf("%.0f", perHour), Verdict: proof.Judge(perHour >= 1000),
			Note: fmt.Sprintf("the best that is published is %.1f", published)},
		r.coverage(),
	}
	if clean := r.campaign("clean"); clean != nil {
		plans, _, violations := clean.counts()
		claims = append(claims, proof.Claim{What: "alarms in runs without faults", Bar: "0 of 200", Found: fmt.Sprintf("%d of %d", violations, plans),
			Verdict: proof.Judge(violations == 0 && plans >= cleanRuns)})
	}
	claims = append(claims, r.claimRBAC()...)
	for _, what := range r.NotJudged {
		claims = append(claims, proof.Claim{What: what, Verdict: proof.NotJudged})
	}
	return claims
}

// faultless returns how many plans there were in which nothing was to go wrong.
func (r *report) faultless() int {
	count := 0
	for _, campaign := range r.Campaigns {
		for _, plan := range campaign.Plans {
			if plan.Faults == "" && campaign.Name != rbacCampaign {
				count++
			}
		}
	}
	return count
}

// claimRBAC holds what the operator may do against what it needs.
func (r *report) claimRBAC() []proof.Claim {
	if r.RBAC == nil {
		return nil
	}
	needed := proof.Claim{What: "permissions of the ClusterRole " + managerRole + " that are needed, shown by taking each away", Bar: "all",
		Found:   fmt.Sprintf("%d of %d", len(r.RBAC.Needed), len(r.RBAC.Needed)+len(r.RBAC.Unneeded)),
		Verdict: proof.Judge(len(r.RBAC.Unneeded) == 0),
		Note:    "with all of them, nothing goes wrong in the same scenarios; those to lead and to serve metrics are taken away in test/contract"}
	if rbac := r.campaign("rbac"); rbac == nil || !rbac.IsWhole {
		needed.Verdict, needed.Note = proof.NotJudged, "not all were tried"
	}
	if len(r.RBAC.Control) > 0 {
		needed.Verdict, needed.Note = proof.NotJudged, "something goes wrong with all of them, too: "+strings.Join(r.RBAC.Control, ", ")
	}
	used := proof.Claim{What: "permissions that were granted and not used, or used and not granted", Bar: "0",
		Found:   fmt.Sprintf("%d and %d of %d", len(r.RBAC.Unused), len(r.RBAC.Missing), len(r.RBAC.Granted)),
		Verdict: proof.Judge(len(r.RBAC.Unused)+len(r.RBAC.Missing) == 0)}
	if !r.RBAC.IsCompared {
		used.Verdict, used.Note = proof.NotJudged, "not enough was played"
	}
	refused := proof.Claim{What: "requests refused to the operator", Bar: "0", Found: fmt.Sprint(len(r.Refused)), Verdict: proof.Judge(len(r.Refused) == 0)}
	starting := 0
	for _, count := range r.Starting {
		starting += count
	}
	if starting > 0 {
		refused.Note = fmt.Sprintf("not counted are %d that an API server refused which had just been started, and knew no roles, or not our kinds, yet", starting)
	}
	return []proof.Claim{needed, used, refused}
}

// coverage is how many writes were tried with every fault.
func (r *report) coverage() proof.Claim {
	claim := proof.Claim{What: "writes that every run of a scenario makes, tried with every fault", Bar: "100 %", Verdict: proof.NotJudged, Found: fmt.Sprintf("%d writes", r.Positions)}
	singles := r.campaign("singles")
	if singles == nil || r.Short {
		claim.Note = "only some were tried"
		return claim
	}
	plans, fired, _ := singles.counts()
	claim.Found = fmt.Sprintf("%d writes, %d plans, of which the fault occurred in %d", r.Positions, plans, fired)
	if !singles.IsWhole || plans < r.Positions*len(proxy.Faults) {
		claim.Note = "not all were played"
		return claim
	}
	claim.Verdict = proof.Judge(fired == plans)
	if fired < plans {
		claim.Note = fmt.Sprintf("in the others, the write was not made, in %d tries", tries)
	}
	return claim
}

func (r *report) campaign(name string) *campaignReport {
	for _, c := range r.Campaigns {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// matrix are the plans of the campaign singles, by fault and kind.
func (r *report) matrix() proof.Table {
	kinds := []string{"foo", "memcached", "cronjob"}
	table := proof.Table{Columns: slices.Concat([]string{"fault"}, kinds, []string{"violations"})}
	singles := r.campaign("singles")
	if singles == nil {
		return table
	}
	type cell struct{ plans, fired, violations int }
	cells := map[string]map[string]*cell{}
	for _, plan := range singles.Plans {
		_, fault, _ := strings.Cut(plan.Faults, ": ")
		kind, _, _ := strings.Cut(plan.Scenario, "-")
		if cells[fault] == nil {
			cells[fault] = map[string]*cell{"foo": {}, "memcached": {}, "cronjob": {}}
		}
		c := cells[fault][kind]
		c.plans++
		if plan.hasOccurred() {
			c.fired++
		}
		if plan.isViolated() {
			c.violations++
		}
	}
	for _, fault := range slices.SortedFunc(maps.Keys(cells), cmp.Compare[string]) {
		row, violations := []string{fault}, 0
		for _, kind := range kinds {
			c := cells[fault][kind]
			row = append(row, fmt.Sprintf("%d of %d", c.fired, c.plans))
			violations += c.violations
		}
		table.Rows = append(table.Rows, append(row, fmt.Sprint(violations)))
	}
	return table
}
