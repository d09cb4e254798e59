package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/testenv"
)

// likelyScenarios is how many scenarios are tried without a permission.
const likelyScenarios = 2

// rbacTimeout is how long an operator that lacks a permission may take. With all permissions, a second is enough.
const rbacTimeout = 8 * time.Second

// managerRole is the ClusterRole whose permissions are removed. test/contract removes those for leader election and
// metrics.
const managerRole = "memcached-operator-manager-role"

// withoutStreams makes the operator send list requests, as if the API server could not stream lists.
var withoutStreams = []string{"KUBE_FEATURE_WatchListClient=false"}

// rbacReport shows whether the operator needs each of its permissions. test/contract shows that it uses all of them.
type rbacReport struct {
	needed   map[string]string // the failure without a permission, by permission
	unneeded []string          // permissions without which nothing fails
	control  []string          // failures in the same scenarios with all permissions
}

// rbac removes each permission in turn from the role of a new service account, so that the API server denies it in
// admission, too.
func (s *suite) rbac(ctx context.Context, r *campaignReport) error {
	rules := s.rules
	if rules == nil {
		var role rbacv1.ClusterRole
		if err := s.env.ControlPlane.Client.Get(ctx, client.ObjectKey{Name: managerRole}, &role); err != nil {
			return err
		}
		rules = role.Rules
	}
	report := &rbacReport{needed: map[string]string{}}
	s.report.rbac = report
	trials := s.trialsOf(rules)
	wrong, err := s.tryAll(ctx, trials)
	if err != nil {
		return err
	}
	for i, trial := range trials {
		switch {
		case trial.lacks == "" && wrong[i] != "":
			report.control = append(report.control, wrong[i])
		case trial.lacks != "" && wrong[i] != "":
			report.needed[trial.lacks] = wrong[i]
		case trial.lacks != "":
			report.unneeded = append(report.unneeded, trial.lacks)
		}
	}
	slices.Sort(report.unneeded)
	result := &planReport{scenario: "rbac", runs: 1}
	for what, list := range map[string][]string{"granted, and not needed": report.unneeded, "refused": s.report.refused,
		"fails with all permissions": report.control} {
		if len(list) > 0 {
			result.findings = append(result.findings, oracle.Finding{Oracle: "rbac",
				Text: what + ": " + strings.Join(list, ", ")})
		}
	}
	r.plans = append(r.plans, result)
	return nil
}

// rights are permissions of an operator, and the scenarios in which the lack of one may show.
type rights struct {
	name        string // the name of the service account
	rules       []rbacv1.PolicyRule
	lacks       string // the removed permission; empty for none
	environment []string
	scenarios   []string // the most likely ones first
}

// trialsOf returns the permissions without one, for each in turn. The first trial is the control: all permissions, with
// every scenario of the others.
func (s *suite) trialsOf(rules []rbacv1.PolicyRule) []rights {
	var controls []rights
	permissions := testenv.Permissions(rules)
	trials := make([]rights, 0, len(permissions))
	known := map[string]bool{}
	for index, permission := range permissions {
		trial := rights{name: s.accountOf("less", index), rules: testenv.RulesWithout(rules, permission),
			lacks: permission, scenarios: s.likely(permission)}
		if strings.HasPrefix(permission, "list ") {
			trial.environment = withoutStreams
		}
		trials = append(trials, trial)
		for _, scenario := range trial.scenarios {
			if id := fmt.Sprint(scenario, trial.environment); !known[id] {
				known[id] = true
				controls = append(controls, rights{name: s.accountOf("all", len(known)), rules: rules,
					environment: trial.environment, scenarios: []string{scenario}})
			}
		}
	}
	return append(controls, trials...)
}

// accountOf returns the name of a service account that no other suite uses.
func (s *suite) accountOf(what string, number int) string {
	return fmt.Sprintf("%s-%d-%d", what, number, s.report.run.Begun.UnixNano())
}

// tryAll returns the failure of each trial; empty if it does not fail.
func (s *suite) tryAll(ctx context.Context, trials []rights) ([]string, error) {
	wrong := make([]string, len(trials))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * parallelPlans)
	for i, trial := range trials {
		group.Go(func() (err error) {
			wrong[i], err = s.failure(ctx, trial)
			return err
		})
	}
	return wrong, group.Wait()
}

// failure plays scenarios with an operator that has some permissions until one fails, and returns the failure; empty if
// none fails.
func (s *suite) failure(ctx context.Context, r rights) (string, error) {
	if err := s.grant(ctx, r); err != nil {
		return "", err
	}
	for _, scenarioName := range r.scenarios {
		found := slices.IndexFunc(s.scenarios, func(s scenario.Scenario) bool { return s.Name == scenarioName })
		if found < 0 {
			continue
		}
		plan := &runner.Plan{Scenario: s.scenarios[found], ServiceAccount: r.name, Environment: r.environment}
		if !plan.Scenario.Waits() {
			plan.Timeout = rbacTimeout
		}
		reference := s.reference(scenarioName)
		run, _, err := s.record(ctx, plan, reference)
		if err != nil {
			return "", err
		}
		findings := append(oracle.Judge(run, reference), unexpected(plan, run)...)
		// Without a rejected request, the failure has another cause than the missing permission.
		if len(findings) > 0 && (r.lacks == "" || isRefused(run)) {
			text, _, _ := strings.Cut(findings[0].String(), "\n")
			return scenarioName + ": " + text, nil
		}
	}
	return "", nil
}

// isRefused reports whether a request of the operator was rejected.
func isRefused(run *oracle.Run) bool {
	return slices.ContainsFunc(run.Requests, func(r proxy.Request) bool { return r.Status == http.StatusForbidden })
}

// grant creates a service account with exactly these permissions.
func (s *suite) grant(ctx context.Context, r rights) error {
	k8s := s.env.ControlPlane.Client
	return errors.Join(
		k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.OperatorNamespace,
			Name: r.name}}),
		k8s.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Rules: r.rules}),
		k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: r.name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: testenv.OperatorNamespace, Name: r.name}},
		}))
}

// likely returns the scenarios that may fail without a permission, the most likely first: scenarios that used the
// permission, of the kinds that involve the resource. To give a child its owner reference again, an operator needs the
// permission to delete it, without using it.
func (s *suite) likely(permission string) []string {
	_, resource, _ := strings.Cut(permission, " ")
	parts := strings.SplitN(resource, "/", 3) // without the subresource
	concerned := slices.DeleteFunc(slices.Clone(kinds.WithVariants), func(k kinds.Kind) bool {
		isOf := func(r schema.GroupVersionResource) bool { return history.Name(r) == parts[0]+"/"+parts[1] }
		return !isOf(k.GroupVersionResource()) &&
			!slices.ContainsFunc(k.Children, func(c kinds.Child) bool { return isOf(c.GroupVersionResource) })
	})
	if len(concerned) == 0 {
		concerned = kinds.All
	}
	ranked := make([][]string, 4)
	for _, played := range s.scenarios {
		isOf := func(k kinds.Kind) bool { return strings.HasPrefix(played.Name, k.Controller()+"-") }
		if played.Before != nil || !slices.ContainsFunc(concerned, isOf) {
			continue
		}
		rank := 3
		switch isUsed := slices.Contains(s.used[permission], played.Name); {
		case isUsed && !played.Waits():
			rank = 0
		case isUsed:
			rank = 1
		case played.Waits():
			continue
		case strings.HasSuffix(played.Name, "-drift"):
			rank = 2
		}
		ranked[rank] = append(ranked[rank], played.Name)
	}
	names := slices.Concat(ranked...)
	return names[:min(likelyScenarios, len(names))]
}
