package main

import (
	"cmp"
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
				"and shown an old " +
				"world. Each plan is one scenario with what is to go wrong in it, in a namespace of its own. What comes of it is " +
				"compared with " +
				"what comes of the scenario without faults, and judged by oracles that see nothing but what was recorded. " +
				"`make reliability` makes this page; test/README.md tells how.",
			"The operator is the program that users run, with their defaults, but with the race detector; it looks at one " +
				"namespace, serves no metrics, runs another " +
				"image at once (`--image-delay=0`), and takes part in an election only where the leader is frozen or cut off. " +
				"Left out of " +
				"what is compared is what the server makes, and how Kubernetes' own controllers tell of their work " +
				"(test/reliability/history/normal.go). " +
				"The operator's hash of what it has applied, and times that mean nothing to the scenario, have to be there, " +
				"whatever they are.",
		},
		Settings: r.settings(),
		Claims:   r.claims(),
		Data:     r,
	}
	campaigns := proof.Table{Columns: []string{"campaign", "it shows", "plans", "faults occurred", "violations",
		"plans/hour", "minutes"}}
	for _, c := range r.Campaigns {
		plans, fired, violations := c.counts()
		campaigns.Rows = append(campaigns.Rows,
			[]string{c.Name, c.What, fmt.Sprint(plans), fmt.Sprint(fired), fmt.Sprint(violations),
				fmt.Sprint(c.perHour()), fmt.Sprintf("%.0f", c.Seconds/60)})
	}
	page.Sections = append(page.Sections,
		proof.Section{
			Title: "Campaigns",
			Text: []string{"Faults are counted as occurred in a plan in which every one of its faults has: of two, the first " +
				"may keep the write of the second from being " +
				"made, and a storm may hit nothing. An outage is for many plans; it has occurred in the one at whose own write " +
				"it was. The campaign rbac is one " +
				"plan, in which each permission is taken away in turn."},
			Tables: []proof.Table{campaigns}},
		proof.Section{
			Title: "Every write, every fault",
			Text: []string{"Plans of the campaign singles by kind and fault, and in how many of them the fault occurred. A " +
				"fault does not occur where " +
				"the write was not made this time: progress is told of as time passes. So what is tried are writes that each of " +
				"three runs without " +
				"faults has made; where a run went on that was cut off, likewise those of its references. expire-watches has " +
				"occurred if a watch " +
				"was answered with 410, and age and age-more if the old world was listed."},
			Tables: []proof.Table{r.matrix()},
		})
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
		proof.Section{Title: "What this does not judge, or not as sharply", Tables: []proof.Table{r.limits()}})
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
func (r *report) limits() proof.Table {
	outages := fmt.Sprintf("each write meets one of three in turn: the API server is killed before it or after it, or "+
		"etcd; what has to be done may take %.0f min, "+
		"as Kubernetes' garbage collector was seen to take two for what the operator has nothing to do with",
		outagePatience.Minutes())
	if campaign := r.campaign(outagesCampaign); campaign != nil {
		outages += fmt.Sprintf(" (the longest plan took %.0f s, rest and all)", campaign.longest())
	}
	return proof.Table{
		Columns: []string{"what", "how far it is judged"},
		Rows: [][]string{
			{"writes that only some runs of a scenario make, such as one more report of progress",
				"not tried one by one; the storms hit them by chance"},
			{"upgrades of the operator",
				"they write nothing, so no fault is tried at a write of theirs; the storms hit their reads by chance"},
			{"reads that go wrong",
				"in storms, and where watches are held, closed or expired and old worlds are served; not one by one"},
			{"how long it takes to do what has to be done",
				"a minute and 40 s at most, where no outage is; times are for `make bench`"},
			{"what a status says of the present",
				"it must have been true 5 s before at the latest, or as much longer as something was held back; after a " +
					"leader stood " +
					"still or was cut off, an outage, an old world, or a list or watch that went wrong, as in most storms, that it " +
					"ever was is enough"},
			{"a status that says less than is true, such as fewer pods than are ready",
				"by how it ends: the next report of progress may be a minute away"},
			{"too many events",
				"each write that goes wrong, and each question about one resource, may be one more of any reason, which in " +
					"storms is many; where " +
					"names are taken for a moment, two more of any reason are taken for news"},
			{"outages", outages},
			{"the load beside the outages",
				"it is of Foos only, and is judged by its end, by the number of Deployments and by 5 s of rest"},
			{"a leader that is cut off",
				"at one write of each scenario; neither that nor one that stands still is tried with upgrades and where the " +
					"operator is away for a while"},
			{"late writes of a former leader", "by what comes of them: there must be nothing"},
			{"goroutines of connections",
				"not counted: a broken connection is given up in its own time; those that watch may be as many as resources that " +
					"are watched"},
			{"what other people do to Jobs", "Jobs are deleted; nobody changes their labels or takes them from their owner"},
		},
	}
}

// longest returns how many seconds the longest plan took.
func (r *campaignReport) longest() float64 {
	longest := 0.0
	for _, plan := range r.Plans {
		longest = max(longest, plan.Seconds)
	}
	return longest
}

// claims are what is held against the bars.
func (r *report) claims() []proof.Claim {
	violations := proof.Claim{What: "plans with a violation", Bar: "0",
		Found: fmt.Sprintf("%d of %d", r.Violations, r.Plans), Verdict: proof.Judge(r.Violations == 0)}
	if faultless := r.faultless(); faultless > 0 {
		violations.Note = fmt.Sprintf("in %d of all plans, nothing was to go wrong", faultless)
	}
	if r.Violations == 0 && slices.ContainsFunc(r.Campaigns, func(c *campaignReport) bool { return !c.IsWhole }) {
		violations.Verdict, violations.Note = proof.NotJudged, "not all were played"
	}
	claims := []proof.Claim{
		violations,
		r.coverage(),
		r.claimRest(),
	}
	if clean := r.campaign("clean"); clean != nil {
		plans, _, violations := clean.counts()
		claims = append(claims,
			proof.Claim{What: "alarms in runs without faults", Bar: "0 of 200",
				Found:   fmt.Sprintf("%d of %d", violations, plans),
				Verdict: proof.Judge(violations == 0 && plans >= cleanRuns)})
	}
	claims = append(claims, r.claimRBAC()...)
	for _, what := range r.NotJudged {
		claims = append(claims, proof.Claim{What: what, Verdict: proof.NotJudged})
	}
	return claims
}

// claimRest holds what is written where there is nothing to write against the bar.
func (r *report) claimRest() proof.Claim {
	written, judged, long := 0, 0, 0
	for _, campaign := range r.Campaigns {
		for _, plan := range campaign.Plans {
			if campaign.Name == rbacCampaign || plan.Faults == loadFaults {
				continue
			}
			judged++
			if campaign.Name == restCampaign {
				long++
			}
			if slices.ContainsFunc(plan.Findings, func(f oracle.Finding) bool { return f.Oracle == oracle.Rest }) {
				written++
			}
		}
	}
	claim := proof.Claim{What: "plans after which something is written at rest, over a restart, or while everything is " +
		"looked at again", Bar: "0",
		Found: fmt.Sprintf("%d of %d", written, judged), Verdict: proof.Judge(written == 0)}
	if long > 0 {
		claim.Note = fmt.Sprintf("in %d of them, half a minute of rest, and another one of looks; else 2 s", long)
	}
	if judged == 0 {
		claim.Verdict, claim.Note = proof.NotJudged, "nothing was played"
	}
	return claim
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
	needed := proof.Claim{What: "permissions of the ClusterRole " + managerRole +
		" that are needed, shown by taking each away", Bar: "all",
		Found:   fmt.Sprintf("%d of %d", len(r.RBAC.Needed), len(r.RBAC.Needed)+len(r.RBAC.Unneeded)),
		Verdict: proof.Judge(len(r.RBAC.Unneeded) == 0),
		Note: "with all of them, nothing goes wrong in the same scenarios; those to lead and to serve metrics are taken " +
			"away in test/contract"}
	if rbac := r.campaign(rbacCampaign); rbac == nil || !rbac.IsWhole {
		needed.Verdict, needed.Note = proof.NotJudged, "not all were tried"
	}
	if len(r.RBAC.Control) > 0 {
		needed.Verdict, needed.Note = proof.NotJudged,
			"something goes wrong with all of them, too: "+strings.Join(r.RBAC.Control, ", ")
	}
	asked := 0
	for _, granted := range r.RBAC.Granted {
		if slices.Contains(r.Used, granted) {
			asked++
		}
	}
	used := proof.Claim{What: "permissions that were granted and neither used nor needed, or used and not granted",
		Bar:     "0",
		Found:   fmt.Sprintf("%d and %d of %d", len(r.RBAC.Unused), len(r.RBAC.Missing), len(r.RBAC.Granted)),
		Verdict: proof.Judge(len(r.RBAC.Unused)+len(r.RBAC.Missing) == 0),
		Note: fmt.Sprintf("used by requests: %d; of the others, admission asks for those that are needed, and those to "+
			"know who reads the metrics are used in test/contract",
			asked)}
	if !r.RBAC.IsCompared {
		used.Verdict, used.Note = proof.NotJudged, "not enough was played"
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
	return []proof.Claim{needed, used, refused}
}

// coverage is how many writes were tried with every fault.
func (r *report) coverage() proof.Claim {
	claim := proof.Claim{What: "writes that every run of a scenario makes, tried with every fault", Bar: "100 %",
		Verdict: proof.NotJudged, Found: fmt.Sprintf("%d writes", r.Positions)}
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
	claim.Verdict, claim.Note = proof.Judge(fired == plans), singles.missed()
	return claim
}

// missed tells why the faults of single writes that have not occurred did not; empty if all have.
func (r *campaignReport) missed() string {
	unwatched, others := 0, 0
	for _, plan := range r.Plans {
		switch {
		case plan.hasOccurred():
		case strings.HasSuffix(plan.Faults, ": "+string(proxy.ExpireWatches)):
			unwatched++
		default:
			others++
		}
	}
	var why []string
	if unwatched > 0 {
		why = append(why,
			fmt.Sprintf("in %d, no watch was answered with 410: the write was not made, or the watch was closed within a "+
				"second of its beginning, so that "+
				"client-go did not go on with it but listed anew, as it does after 410", unwatched))
	}
	if others > 0 {
		why = append(why,
			fmt.Sprintf("in %d, nothing went wrong in %d tries: the write was not made, or no old world listed", others, tries))
	}
	return strings.Join(why, "; ")
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
	names := make([]string, 0, len(kinds.All))
	for _, k := range kinds.All {
		names = append(names, k.Controller())
	}
	table := proof.Table{Columns: slices.Concat([]string{"fault"}, names, []string{"violations"})}
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
			cells[fault] = map[string]*cell{}
			for _, kind := range names {
				cells[fault][kind] = &cell{}
			}
		}
		c := cells[fault][kind]
		c.plans++
		if plan.hasOccurred() {
			c.fired++
		}
		if len(plan.Findings) > 0 {
			c.violations++
		}
	}
	for _, fault := range slices.SortedFunc(maps.Keys(cells), cmp.Compare[string]) {
		row, violations := []string{fault}, 0
		for _, kind := range names {
			c := cells[fault][kind]
			row = append(row, fmt.Sprintf("%d of %d", c.fired, c.plans))
			violations += c.violations
		}
		table.Rows = append(table.Rows, append(row, fmt.Sprint(violations)))
	}
	return table
}
