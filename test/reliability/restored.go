package main

import (
	"context"
	"os"
	"os/exec"

	"github.com/example/memcached-operator/test/reliability/oracle"
)

// restored restores etcd under an operator, in a process of its own: that finds the etcd to stop among its children.
func (s *suite) restored(ctx context.Context, r *campaignReport) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	result := &planReport{scenario: "all kinds", faults: "etcd is restored", fired: 1}
	out, err := exec.CommandContext(ctx, self, "--restore", "--manager="+s.env.Program()).CombinedOutput()
	if err != nil {
		result.findings = []oracle.Finding{{Oracle: r.name, Text: string(out)}}
	}
	r.plans = append(r.plans, result)
	return ctx.Err()
}
