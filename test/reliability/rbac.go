package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/oracle"
	"github.com/example/memcached-operator/test/reliability/runner"
	"github.com/example/memcached-operator/test/reliability/scenario"
	"github.com/example/memcached-operator/test/testenv"
)

// rbacPatience is how long an operator that lacks a permission may take: one that has it takes a second.
const rbacPatience = 8 * time.Second

// withoutStreams has the operator list as where the API server cannot stream lists.
var withoutStreams = []string{"KUBE_FEATURE_WatchListClient=false"}

// notHere are permissions for what this suite does not do: to serve metrics. The suite in test/contract needs them.
var notHere = map[string]bool{
	"create authentication.k8s.io/tokenreviews":        true,
	"create authorization.k8s.io/subjectaccessreviews": true,
}

// rbacReport is what the operator may do, has done, and cannot do without.
type rbacReport struct {
	Granted []string `json:"granted"`
	// Needed are permissions with what goes wrong without each.
	Needed map[string]string `json:"needed"`
	// Unneeded are those without which nothing went wrong.
	Unneeded []string `json:"unneeded"`
	// Unused are those that were granted, and neither used nor needed; empty if not all has been tried.
	Unused []string `json:"unused"`
	// Missing are those that were used and not granted by config/rbac.
	Missing []string `json:"missing"`
	// Refused are requests of an operator with all its rights that the API server has refused.
	Refused []string `json:"refused"`
}

// rbac takes each permission away in turn, for real: from the role of a service account of its own. What the API server asks for in
// admission, which no proxy sees, is taken away so too.
func (s *suite) rbac(ctx context.Context, r *campaignReport) error {
	k8s := s.env.ControlPlane.Client
	var role rbacv1.ClusterRole
	if err := k8s.Get(ctx, client.ObjectKey{Name: "memcached-operator-manager-role"}, &role); err != nil {
		return err
	}
	permissions := permissionsOf(role.Rules)
	report := &rbacReport{Needed: map[string]string{}, Refused: s.refused}
	s.report.RBAC = report
	queue := make(chan int)
	errs := make([]error, s.parallel)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			for index := range queue {
				if errs[i] != nil {
					continue
				}
				var reason string
				if reason, errs[i] = s.without(ctx, permissions, index); errs[i] == nil {
					mu.Lock()
					if reason != "" {
						report.Needed[permissions[index]] = reason
					} else {
						report.Unneeded = append(report.Unneeded, permissions[index])
					}
					mu.Unlock()
				}
			}
		})
	}
	for index := range permissions {
		queue <- index
	}
	close(queue)
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.compareRBAC(ctx, r, permissions)
}

// compareRBAC compares what is granted with what was used or is needed.
func (s *suite) compareRBAC(ctx context.Context, r *campaignReport, permissions []string) error {
	var leader rbacv1.Role
	key := client.ObjectKey{Namespace: testenv.OperatorNamespace, Name: "memcached-operator-leader-election-role"}
	if err := s.env.ControlPlane.Client.Get(ctx, key, &leader); err != nil {
		return err
	}
	report := s.report.RBAC
	report.Granted = slices.Sorted(slices.Values(slices.Concat(permissions, permissionsOf(leader.Rules), slices.Collect(maps.Keys(notHere)))))
	isComplete := s.scenario == "" && s.hasRun("leaders")
	for _, granted := range report.Granted {
		_, isNeeded := report.Needed[granted]
		if isComplete && !s.used[granted] && !isNeeded && !notHere[granted] {
			report.Unused = append(report.Unused, granted)
		}
	}
	for used := range s.used {
		if !slices.Contains(report.Granted, used) {
			report.Missing = append(report.Missing, used)
		}
	}
	slices.Sort(report.Missing)
	slices.Sort(report.Unneeded)
	result := &planReport{Scenario: "rbac"}
	for what, list := range map[string][]string{
		"granted, and not needed": report.Unneeded, "granted, and not used": report.Unused,
		"used, and not granted": report.Missing, "refused": report.Refused,
	} {
		if len(list) > 0 {
			result.Findings = append(result.Findings, oracle.Finding{Oracle: "rbac", Text: what + ": " + strings.Join(list, ", ")})
		}
	}
	r.add(result)
	return nil
}

// without plays scenarios with an operator that lacks one permission until one goes wrong, and returns how; nothing if none does.
func (s *suite) without(ctx context.Context, permissions []string, index int) (string, error) {
	name := fmt.Sprintf("less-%d", index)
	less := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i, permission := range permissions {
		if i != index {
			verb, rest, _ := strings.Cut(permission, " ")
			group, resource, _ := strings.Cut(rest, "/")
			less.Rules = append(less.Rules, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}})
		}
	}
	k8s := s.env.ControlPlane.Client
	err := errors.Join(
		k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.OperatorNamespace, Name: name}}),
		k8s.Create(ctx, less),
		k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: testenv.OperatorNamespace, Name: name}},
		}))
	if err != nil {
		return "", err
	}
	for _, scenarioName := range likely(permissions[index]) {
		found := slices.IndexFunc(s.scenarios, func(s scenario.Scenario) bool { return s.Name == scenarioName })
		if found < 0 {
			continue
		}
		plan := &runner.Plan{Scenario: s.scenarios[found], ServiceAccount: name, Patience: rbacPatience}
		if strings.HasPrefix(permissions[index], "list ") {
			plan.Environment = withoutStreams
		}
		prepared, err := s.env.Prepare(ctx, plan)
		if err != nil {
			return "", err
		}
		reference := s.reference(scenarioName)
		run, err := prepared.Play(ctx, reference)
		if err != nil {
			return "", err
		}
		prepared.End()
		if findings := oracle.Judge(run, reference); len(findings) > 0 {
			text, _, _ := strings.Cut(findings[0].String(), "\n")
			return scenarioName + ": " + text, nil
		}
	}
	return "", nil
}

// likely returns the scenarios in which the lack of a permission may show, the likeliest first.
func likely(permission string) []string {
	switch verb, resource, _ := strings.Cut(permission, " "); {
	case strings.Contains(resource, "cronjobs") || strings.Contains(resource, "jobs"):
		return []string{"cronjob-fire", "cronjob-replace"}
	case strings.Contains(resource, "foos"):
		return []string{"foo-create"}
	case strings.HasSuffix(resource, "/deployments") && verb == "delete":
		return []string{"foo-rename", "foo-drift"}
	case strings.HasSuffix(resource, "/deployments") || strings.HasSuffix(resource, "/events"):
		return []string{"foo-create", "foo-scale"}
	}
	return []string{"memcached-create", "memcached-drift"}
}

// permissionsOf returns rules as "verb group/resource", sorted.
func permissionsOf(rules []rbacv1.PolicyRule) []string {
	permissions := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					permissions[verb+" "+group+"/"+resource] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(permissions))
}
