package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"

	"github.com/example/memcached-operator/test/proof"
	"github.com/example/memcached-operator/test/reliability/oracle"
)

// What happens to the operator after etcd is restored.
const (
	restarting = "restart"
	continuing = "continue"
)

// settled matches what runner.Restore logs of a step.
var settled = regexp.MustCompile(`(?m)^(.*): settled after ([0-9.]+) s$`)

// hasRestored matches the output if etcd was restored, and bug what no operator may log.
var (
	hasRestored = regexp.MustCompile(`(?m)^restore etcd's data: settled`)
	bug         = regexp.MustCompile(`the operator's log has "`)
)

// restored restores etcd under an operator and then restarts it, as docs/troubleshooting.md says. It repeats this
// without the restart: whether that operator carries out changes is reported, not judged. Each runs in a process of its
// own, because runner.Restore finds etcd among its children.
func (s *suite) restored(ctx context.Context, r *campaignReport) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s.report.restored = &proof.Table{Columns: []string{"the operator", "step", "settled after, s"}}
	for _, then := range []string{restarting, continuing} {
		out, err := exec.CommandContext(ctx, self, "--restore="+then, "--manager="+s.env.Program()).CombinedOutput()
		for _, step := range settled.FindAllStringSubmatch(string(out), -1) {
			s.report.restored.Rows = append(s.report.restored.Rows, []string{then, step[1], step[2]})
		}
		result := &planReport{scenario: "all kinds", faults: "etcd is restored, " + then, runs: 1, fired: 1}
		switch {
		case err != nil && (then == restarting || !hasRestored.Match(out) || bug.Match(out)):
			result.findings = []oracle.Finding{{Oracle: r.name, Text: fmt.Sprintf("%v\n%s", err, out)}}
		case err != nil:
			s.report.restored.Rows = append(s.report.restored.Rows, []string{then, "the next step", "did not settle"})
		}
		r.plans = append(r.plans, result)
	}
	return ctx.Err()
}
