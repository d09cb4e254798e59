package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/testenv"
)

// What the operator has used is known when all specs are over. It says nothing when only some of them have run.
var _ = AfterSuite(func(ctx context.Context) {
	config, _ := GinkgoConfiguration()
	if cp == nil || len(config.FocusStrings)+len(config.SkipStrings)+len(config.FocusFiles) > 0 {
		return
	}
	granted := grantedTo(ctx, testenv.OperatorServiceAccount)
	used, refused := map[string]bool{}, map[string]bool{}
	for _, request := range cp.Audit.Since(0, func(r testenv.Request) bool { return r.User == testenv.OperatorUser }) {
		if request.Resource == "" {
			continue // URLs for everybody: discovery
		}
		used[request.Verb+" "+request.Group+"/"+request.Resource] = true
		if request.Verb == "patch" && request.IsCreation() {
			used["create "+request.Group+"/"+request.Resource] = true
		}
		if request.Code == 403 && request.Verb != "patch" && request.Verb != "create" { // those are refused by quotas and policies too
			refused[request.String()] = true
		}
	}
	// An owner's finalizers are not written but asked for: see "the right to make an owner wait".
	for _, permission := range granted {
		if strings.HasSuffix(permission, "/finalizers") {
			used[permission] = true
		}
	}
	Expect(slices.Sorted(maps.Keys(used))).To(Equal(granted), "what the operator uses (actual) and what config/rbac grants (expected)")
	Expect(refused).To(BeEmpty())
	AddReportEntry(fmt.Sprintf("permissions granted to the operator, all of them used: %d", len(granted)))
})

// grantedTo returns what the roles bound to a service account of the operator's grant.
func grantedTo(ctx context.Context, serviceAccount string) []string {
	GinkgoHelper()
	permissions := map[string]bool{}
	add := func(rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						permissions[verb+" "+group+"/"+resource] = true
					}
				}
			}
		}
	}
	isHis := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Namespace == testenv.OperatorNamespace && s.Name == serviceAccount
		})
	}
	var clusterBindings rbacv1.ClusterRoleBindingList
	Expect(k8s.List(ctx, &clusterBindings)).To(Succeed())
	for _, binding := range clusterBindings.Items {
		if isHis(binding.Subjects) {
			add(get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: binding.RoleRef.Name}}).Rules)
		}
	}
	var bindings rbacv1.RoleBindingList
	Expect(k8s.List(ctx, &bindings)).To(Succeed())
	for _, binding := range bindings.Items {
		if isHis(binding.Subjects) {
			add(get(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.RoleRef.Name}}).Rules)
		}
	}
	return slices.Sorted(maps.Keys(permissions))
}

var _ = Describe("RBAC", func() {
	It("needs the right to make an owner wait, where a cluster asks for it as OpenShift does", func(ctx context.Context) {
		ns := newNamespace(ctx)
		Expect(k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"}})).To(Succeed())
		role := get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "memcached-operator-manager-role"}})
		var rules []rbacv1.PolicyRule
		for _, rule := range role.Rules {
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return strings.HasSuffix(r, "/finalizers") })
			if len(rule.Resources) > 0 {
				rules = append(rules, rule)
			}
		}
		less := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"}, Rules: rules}
		Expect(k8s.Create(ctx, less)).To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "less"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "less"}},
		})).To(Succeed())

		for _, k := range kinds {
			object := k.create(ctx, k.make(ns, strings.ToLower(k.name), 1))
			child := k.own(ctx, object)[0]
			child.SetName("copy-" + child.GetName())
			child.SetResourceVersion("")
			child.SetUID("")
			dryRun := func(user string) error {
				as, err := cp.ClientAs(user)
				Expect(err).NotTo(HaveOccurred())
				return as.Create(ctx, child.DeepCopyObject().(client.Object), client.DryRunAll)
			}
			Expect(dryRun(testenv.OperatorUser)).To(Succeed())
			Expect(dryRun("system:serviceaccount:" + ns + ":less")).To(MatchError(ContainSubstring("cannot set blockOwnerDeletion")))
		}
	})
})
