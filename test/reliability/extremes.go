package main

import (
	"context"
	"fmt"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/extremes"
	"github.com/example/memcached-operator/test/reliability/oracle"
)

// extremes tries sizes that no scenario has.
func (s *suite) extremes(ctx context.Context, r *campaignReport) error {
	counted, err := extremes.Run(ctx, s.env.Program(), s.logf)
	result := &planReport{scenario: "all kinds", faults: "extreme sizes", runs: 1, fired: 1}
	if err != nil {
		result.findings = []oracle.Finding{{Oracle: r.name, Text: err.Error()}}
	}
	s.report.extremes = &proof.Table{Columns: []string{"what", "bar", "found", "not judged: why"}}
	for _, count := range counted {
		s.report.extremes.Rows = append(s.report.extremes.Rows,
			[]string{count.What, fmt.Sprint(count.Bound), fmt.Sprint(count.Found), count.Unjudged})
		if count.IsViolated() {
			result.findings = append(result.findings, oracle.Finding{Oracle: r.name,
				Text: fmt.Sprintf("%s: %d, not at most %d", count.What, count.Found, count.Bound)})
		}
	}
	r.plans = append(r.plans, result)
	return ctx.Err()
}
