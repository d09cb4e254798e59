package contract

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/testenv"
)

// rejectedFor is long enough for a retry of every kind: client-go itself retries for about 10 s.
const rejectedFor = 30 * time.Second

// An API server that is overloaded rejects requests of some clients by priority and fairness.
var _ = Describe("While the API server rejects its requests", ownManager, func() {
	It("is patient, and goes on when they are accepted", func(ctx context.Context) {
		startDefault(ctx)
		ns := newNamespace(ctx)
		objects := map[string]client.Object{}
		for _, k := range kinds {
			if k.Deploys {
				objects[k.Title()] = k.create(ctx, k.Make(ns, k.objectName(), 1))
			}
		}
		accept := reject(ctx)
		mark := cp.Audit.Now()
		for _, k := range kinds {
			if k.Deploys {
				edit(ctx, objects[k.Title()], func(object client.Object) { k.Resize(object, 2) })
			}
		}
		time.Sleep(rejectedFor)
		rejected := requests(mark, ns, func(r testenv.Request) bool { return r.Code == http.StatusTooManyRequests })
		Expect(rejected).NotTo(BeEmpty(), "the API server accepts all requests")
		report("requests of an operator whose requests are rejected, for each resource and second",
			len(rejected)/len(objects)/int(rejectedFor.Seconds()), 2)
		accept(ctx)
		for _, k := range kinds {
			if k.Deploys {
				k.settle(ctx, objects[k.Title()])
			}
		}
	})
})

// reject makes the API server reject the operator's requests for resources, but not for its lease: it must not lose that.
func reject(ctx context.Context) (accept func(context.Context)) {
	GinkgoHelper()
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "nobody"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](0),
				LendablePercent: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}}
	rules := []flowcontrolv1.ResourcePolicyRule{}
	for _, k := range kinds {
		for _, group := range []string{k.GroupVersion.Group, k.Children[0].Group} {
			rules = append(rules, flowcontrolv1.ResourcePolicyRule{Verbs: []string{rbacv1.VerbAll},
				APIGroups: []string{group}, Resources: []string{rbacv1.ResourceAll}, Namespaces: []string{"*"}})
		}
	}
	flow := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		Spec: flowcontrolv1.FlowSchemaSpec{MatchingPrecedence: 1,
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level.Name},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{ResourceRules: rules,
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindServiceAccount,
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: testenv.OperatorNamespace,
						Name: testenv.OperatorServiceAccount}}}}}}}
	accept = func(ctx context.Context) {
		for _, object := range []client.Object{flow, level} {
			Expect(client.IgnoreNotFound(k8s.Delete(ctx, object))).To(Succeed())
		}
	}
	DeferCleanup(accept)
	for _, object := range []client.Object{level, flow} {
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
	return accept
}
