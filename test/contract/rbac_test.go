package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/testenv"
)

// permissions are those of the operator in one process.
type permissions struct {
	Granted, Used, Refused []string
}

// isPart reports whether only some of the specs run, which do not use all permissions.
func isPart(report Report) bool {
	config := report.SuiteConfig
	return len(config.FocusStrings)+len(config.SkipStrings)+len(config.FocusFiles)+
		len(config.SkipFiles)+len(config.LabelFilter) > 0
}

// Each process reads its own audit log.
var _ = AfterSuite(func(ctx context.Context) {
	if cp == nil {
		return
	}
	used, refused := map[string]bool{}, map[string]bool{}
	for _, request := range cp.Audit.Since(0, func(r testenv.Request) bool { return r.User == testenv.OperatorUser }) {
		if request.Resource == "" {
			continue // discovery, which every user may use
		}
		used[request.Verb+" "+request.Group+"/"+request.Resource] = true
		if request.Verb == "patch" && request.IsCreation() {
			used["create "+request.Group+"/"+request.Resource] = true
		}
		// those are refused by quotas and policies too
		if request.Code == 403 && request.Verb != "patch" && request.Verb != "create" {
			refused[request.String()] = true
		}
	}
	AddReportEntry("permissions", permissions{
		Granted: grantedTo(ctx, testenv.OperatorServiceAccount),
		Used:    slices.Sorted(maps.Keys(used)),
		Refused: slices.Sorted(maps.Keys(refused)),
	}, ReportEntryVisibilityNever)
})

// A process alone does not use all permissions.
var _ = ReportAfterSuite("what it may do", func(report Report) {
	if isPart(report) || report.PreRunStats.SpecsThatWillRun == 0 {
		return
	}
	entries := entriesOf(report, "permissions")
	Expect(entries).To(HaveLen(report.SuiteConfig.ParallelTotal), "each process has to report what its operator used")
	used := map[string]bool{}
	for _, permission := range checkedByAdmission() {
		used[permission] = true
	}
	var granted []string
	for _, entry := range entries {
		var of permissions
		content, err := json.Marshal(entry.GetRawValue()) // another process's arrives as a map
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(content, &of)).To(Succeed())
		Expect(of.Refused).To(BeEmpty())
		Expect(of.Granted).NotTo(BeEmpty())
		if granted != nil {
			Expect(of.Granted).To(Equal(granted), "every process grants the same")
		}
		granted = of.Granted
		for _, permission := range of.Used {
			used[permission] = true
		}
	}
	Expect(slices.Sorted(maps.Keys(used))).To(Equal(granted),
		"what the operator uses (actual) and what config/rbac grants (expected)")
	fmt.Printf("%5d permissions granted to the operator, all of them needed\n", len(granted))
})

// grantedTo returns what the roles bound to a service account of the operator's grant.
func grantedTo(ctx context.Context, serviceAccount string) []string {
	GinkgoHelper()
	var rules []rbacv1.PolicyRule
	isHis := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Namespace == testenv.OperatorNamespace && s.Name == serviceAccount
		})
	}
	var clusterBindings rbacv1.ClusterRoleBindingList
	Expect(k8s.List(ctx, &clusterBindings)).To(Succeed())
	for _, binding := range clusterBindings.Items {
		if isHis(binding.Subjects) {
			rules = append(rules,
				get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: binding.RoleRef.Name}}).Rules...)
		}
	}
	var bindings rbacv1.RoleBindingList
	Expect(k8s.List(ctx, &bindings)).To(Succeed())
	for _, binding := range bindings.Items {
		if isHis(binding.Subjects) {
			role := get(ctx,
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.RoleRef.Name}})
			rules = append(rules, role.Rules...)
		}
	}
	return testenv.Permissions(rules)
}

// checkedByAdmission returns the permissions that the operator never uses, but needs in clusters that check owner
// references, as the API server of this suite does. The specs below show that each is needed.
func checkedByAdmission() []string {
	var permissions []string
	for _, k := range kinds {
		permissions = append(permissions, "update "+k.GroupVersion.Group+"/"+k.Resource+"/finalizers")
		if !k.Deploys {
			continue
		}
		for _, child := range k.Children {
			permissions = append(permissions, "delete "+child.Group+"/"+child.Resource)
		}
	}
	return permissions
}

var _ = Describe("RBAC", func() {
	// without returns a client with the operator's rights in a namespace, but for one.
	without := func(ctx context.Context, ns, permission string) client.Client {
		GinkgoHelper()
		role := get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "memcached-operator-manager-role"}})
		less := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"},
			Rules: testenv.RulesWithout(role.Rules, permission)}
		Expect(k8s.Create(ctx, less)).To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "less"},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: "less-" + ns}},
		})).To(Succeed())
		as, err := cp.ClientAs("less-" + ns)
		Expect(err).NotTo(HaveOccurred())
		return as
	}

	for _, k := range kinds {
		It("needs to update the finalizers of a "+k.Title()+" to set blockOwnerDeletion", func(ctx context.Context) {
			ns := newNamespace(ctx)
			less := without(ctx, ns, "update "+k.GroupVersion.Group+"/"+k.Resource+"/finalizers")
			for _, child := range k.own(ctx, k.create(ctx, k.Make(ns, "one", 1))) {
				child.SetName("copy")
				child.SetResourceVersion("")
				child.SetUID("")
				if job, ok := child.(*batchv1.Job); ok { // the API server generates these
					job.Spec.Selector, job.Spec.Template.Labels = nil, nil
				}
				Eventually(ctx, func() error { return less.Create(ctx, child, client.DryRunAll) }).
					Should(MatchError(ContainSubstring("cannot set blockOwnerDeletion")), "%T", child)
			}
		})
	}

	for _, k := range deploying {
		for i, resource := range k.Children {
			It("needs the right to delete the "+resource.Kind+" of a "+k.Title()+" to give it its owner reference back",
				func(ctx context.Context) {
					ns := newNamespace(ctx)
					child := k.own(ctx, k.create(ctx, k.Make(ns, "one", 1)))[i]
					less := without(ctx, ns, "delete "+resource.Group+"/"+resource.Resource)
					changed := child.DeepCopyObject().(client.Object)
					changed.SetOwnerReferences(nil)
					Eventually(ctx, func() error { return less.Patch(ctx, changed, client.MergeFrom(child), client.DryRunAll) }).
						Should(MatchError(ContainSubstring("cannot set an ownerRef on a resource you can't delete")))
				})
		}
	}

	// Permissions for leader election and metrics. test/reliability takes away those for the kinds.
	Describe("of the manager itself", ownManager, func() {
		var (
			ns string
			m  *testenv.Manager
		)
		// startWithout starts a manager that leads in a namespace of its own and lacks two permissions.
		startWithout := func(ctx context.Context, lacks ...string) {
			GinkgoHelper()
			without := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
				for _, permission := range lacks {
					rules = testenv.RulesWithout(rules, permission)
				}
				return rules
			}
			ns = newNamespace(ctx)
			subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "less"}}
			leader := get(ctx,
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.OperatorNamespace,
					Name: "memcached-operator-leader-election-role"}})
			scraped := get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "memcached-operator-metrics-auth-role"}})
			for _, object := range []client.Object{
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"}},
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"},
					Rules: without(leader.Rules)},
				&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "less"}, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "less"}},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "less-" + ns},
					Rules: without(scraped.Rules)},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "less-" + ns}, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "less-" + ns}},
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kinds-" + ns}, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-manager-role"}},
			} {
				Expect(k8s.Create(ctx, object)).To(Succeed())
			}
			kubeconfig, err := cp.Kubeconfig(ctx, ns, "less")
			Expect(err).NotTo(HaveOccurred())
			m, err = startProgram(ctx, []string{"WATCH_NAMESPACE=" + ns}, "--kubeconfig="+kubeconfig,
				"--leader-election-namespace="+ns)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { _ = m.Stop() })
		}
		isRefused := func(what string) {
			Eventually(m.Logs).Should(ContainSubstring("cannot " + strings.ReplaceAll(what, `"`, `\"`)))
		}
		scrapes := func() (int, error) {
			code, _, err := m.Scrape(scraper)
			return code, err
		}
		DescribeTable("is needed to lead, or to serve metrics", func(ctx context.Context, verb, review string) {
			startWithout(ctx, verb+" coordination.k8s.io/leases", review)
			isRefused(verb + ` resource "leases"`)
			Eventually(scrapes).Should(Equal(http.StatusInternalServerError))
			Expect(m.Logs()).NotTo(ContainSubstring("Starting workers"))
		}, Entry("create leases, create tokenreviews", "create", "create authentication.k8s.io/tokenreviews"),
			Entry("get leases, create subjectaccessreviews", "get", "create authorization.k8s.io/subjectaccessreviews"))

		It("is needed to go on leading: update leases", func(ctx context.Context) {
			startWithout(ctx, "update coordination.k8s.io/leases")
			Eventually(m.Logs).Should(ContainSubstring("Starting workers"))
			isRefused(`update resource "leases"`)
			Eventually(m.Logs).Should(ContainSubstring("leader election lost"))
		})
	})

	It("is enough to lead, and to serve metrics", func(ctx context.Context) {
		Eventually(manager.Logs).Should(ContainSubstring("Starting workers"))
		code, _ := scrape(scraper)
		Expect(code).To(Equal(http.StatusOK))
	})
})
