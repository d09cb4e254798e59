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

// rbacTimeout is how long an operator without a permission may take: with it, a second is enough.
const rbacTimeout = 8 * time.Second

// managerRole is the ClusterRole whose permissions are taken away. test/contract takes away those for leader election
// and for the metrics.
const managerRole = "memcached-operator-manager-role"

// withoutStreams makes the operator send list requests, as if the API server could not stream lists.
var withoutStreams = []string{"KUBE_FEATURE_WatchListClient=false"}

// rbacReport is what the operator cannot do without. That it uses all permissions, test/contract shows.
type rbacReport struct {
	needed   map[string]string // what fails without each permission
	unneeded []string          // permissions without which nothing fails
	control  []string          // what fails in the same scenarios with all permissions
}

// rbac takes each permission away in turn, from the role of a service account of its own, so that the API server lacks
// it for admission, too.
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
	result := &planReport{scenario: "rbac"}
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

// rights are permissions of an operator, and where it may fail for the lack of some.
type rights struct {
	name        string // of the service account
	rules       []rbacv1.PolicyRule
	lacks       string // the permission that is taken away; empty for none
	environment []string
	scenarios   []string // the likeliest first
}

// trialsOf returns all permissions but one, each in turn, and before them all permissions, with each scenario that is
// played without one.
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
	return fmt.Sprintf("%s-%d-%d", what, number, s.report.begun.UnixNano())
}

// tryAll returns how each fails; nothing if it does not.
func (s *suite) tryAll(ctx context.Context, trials []rights) ([]string, error) {
	wrong := make([]string, len(trials))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * parallelPlans)
	for i, trial := range trials {
		group.Go(func() (err error) {
			wrong[i], err = s.goesWrong(ctx, trial)
			return err
		})
	}
	return wrong, group.Wait()
}

// goesWrong plays scenarios with an operator that has some rights until one fails, and returns how; nothing if none
// does.
func (s *suite) goesWrong(ctx context.Context, r rights) (string, error) {
	if err := s.grant(ctx, r); err != nil {
		return "", err
	}
	for _, scenarioName := range r.scenarios {
		found := slices.IndexFunc(s.scenarios, func(s scenario.Scenario) bool { return s.Name == scenarioName })
		if found < 0 {
			continue
		}
		plan := &runner.Plan{Scenario: s.scenarios[found], ServiceAccount: r.name, Environment: r.environment,
			Timeout: rbacTimeout}
		reference := s.reference(scenarioName)
		run, err := s.record(ctx, plan, reference)
		if err != nil {
			return "", err
		}
		// A failure by chance is no lack of a permission: that is refused.
		if findings := oracle.Judge(run, reference); len(findings) > 0 && (r.lacks == "" || isRefused(run)) {
			text, _, _ := strings.Cut(findings[0].String(), "\n")
			return scenarioName + ": " + text, nil
		}
	}
	return "", nil
}

// isRefused reports whether a request of the operator was refused.
func isRefused(run *oracle.Run) bool {
	return slices.ContainsFunc(run.Requests, func(r proxy.Request) bool { return r.Status == http.StatusForbidden })
}

// grant creates a service account that has these rights and no others.
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

// likely returns the scenarios that may fail without a permission, the likeliest first: of the kinds that have to do
// with the resource, those that have used the permission.
func (s *suite) likely(permission string) []string {
	_, resource, _ := strings.Cut(permission, " ")
	parts := strings.SplitN(resource, "/", 3) // without the subresource
	concerned := slices.DeleteFunc(slices.Clone(kinds.All), func(k kinds.Kind) bool {
		isOf := func(r schema.GroupVersionResource) bool { return history.Name(r) == parts[0]+"/"+parts[1] }
		return !isOf(k.GroupVersionResource()) &&
			!slices.ContainsFunc(k.Children, func(c kinds.Child) bool { return isOf(c.GroupVersionResource) })
	})
	if len(concerned) == 0 {
		concerned = kinds.All
	}
	var names []string
	for _, played := range s.scenarios {
		isOf := func(k kinds.Kind) bool { return strings.HasPrefix(played.Name, k.Controller()+"-") }
		if played.Age == 0 && played.Before == nil && slices.ContainsFunc(concerned, isOf) {
			names = append(names, played.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		rank := map[bool]int{true: 0, false: 1}
		return rank[slices.Contains(s.used[permission], a)] - rank[slices.Contains(s.used[permission], b)]
	})
	return names[:min(likelyScenarios, len(names))]
}
