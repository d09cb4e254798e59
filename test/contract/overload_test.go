package contract

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// rejectedFor is much longer than client-go itself retries a rejected request, which is about 10 s.
const rejectedFor = 2 * time.Minute

// rejectedEach bounds the rejected requests for an object in that time, as client-go and the operator wait longer and
// longer.
const rejectedEach = 40

// busyRequests are more than a level with 0 shares has seats.
const busyRequests = 10

// An API server that is overloaded rejects requests by priority and fairness.
var _ = Describe("While the API server rejects requests", ownManager, func() {
	It("is patient, and goes on when they are accepted", func(ctx context.Context) {
		startDefault(ctx)
		ns := newNamespace(ctx)
		objects := map[string]client.Object{}
		for _, k := range kinds {
			objects[k.Title()] = k.Make(ns, k.ObjectName(), 1)
			Expect(k8s.Create(ctx, objects[k.Title()])).To(Succeed())
		}
		for _, k := range kinds {
			Eventually(ctx, k.conditionsOf(objects[k.Title()])).Should(And(HaveKeyWithValue("Degraded", "False/AsExpected"),
				HaveKeyWithValue("Progressing", HavePrefix("False/"))))
		}
		accept := overload(ctx)
		mark := cp.Audit.Now()
		for _, k := range kinds {
			if k.Deploys {
				edit(ctx, objects[k.Title()], func(object client.Object) { k.Resize(object, 2) })
			} else {
				k.due(ctx, objects[k.Title()])
			}
		}
		time.Sleep(rejectedFor)
		rejected := requests(mark, ns, isRejected)
		for _, k := range kinds {
			name := k.firstChildName(k.ObjectName())
			if !k.Deploys { // the audit log has no name of what is created
				name = ""
			}
			Expect(rejected).To(ContainElement(And(HaveField("Resource", k.Children[0].Resource), HaveField("Name", name))),
				"the API server accepts requests for children of a %s", k.Title())
		}
		report(fmt.Sprintf("rejected requests of %d kinds in %s", len(objects), rejectedFor), len(rejected),
			rejectedEach*len(objects))
		accept()
		for _, k := range kinds {
			Eventually(ctx, k.conditionsOf(objects[k.Title()])).WithTimeout(2 * time.Minute).Should(settled)
		}
	})
})

func isRejected(r testenv.Request) bool { return r.Code == http.StatusTooManyRequests }

// overload makes writes of the operator, to children and statuses, share a level of priority and fairness with few
// seats, which requests of another user occupy, because a webhook does not answer them. It waits until the API server
// rejects a request of the level.
func overload(ctx context.Context) (accept func()) {
	GinkgoHelper()
	const busyUser = "busy"
	groups := []string{} // without that of events
	for _, k := range kinds {
		groups = append(groups, k.GroupVersion.Group)
		for _, child := range k.Children {
			groups = append(groups, child.Group)
		}
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "few-seats"},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](0),
				LendablePercent: ptr.To[int32](0), BorrowingLimitPercent: ptr.To[int32](0),
				LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}}}}
	flow := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: level.Name},
		Spec: flowcontrolv1.FlowSchemaSpec{MatchingPrecedence: 2,
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level.Name},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"create", "patch", "delete"},
					APIGroups: groups, Resources: []string{rbacv1.ResourceAll}, Namespaces: []string{"*"}}},
				Subjects: []flowcontrolv1.Subject{
					{Kind: flowcontrolv1.SubjectKindServiceAccount, ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
						Namespace: testenv.OperatorNamespace, Name: testenv.OperatorServiceAccount}},
					{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: busyUser}},
				}}}}}
	ns, released := newNamespace(ctx), make(chan struct{})
	webhook(ctx, ns, kinds[0],
		func(_ http.ResponseWriter, request *http.Request) *admissionv1.AdmissionResponse {
			select {
			case <-released:
			case <-request.Context().Done():
			}
			return &admissionv1.AdmissionResponse{Allowed: true}
		})
	accept = sync.OnceFunc(func() {
		close(released)
		for _, object := range []client.Object{flow, level} {
			Expect(client.IgnoreNotFound(k8s.Delete(context.WithoutCancel(ctx), object))).To(Succeed())
		}
	})
	DeferCleanup(accept)
	Expect(k8s.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: busyUser},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: busyUser}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}})).To(Succeed())
	for _, object := range []client.Object{level, flow} {
		Expect(k8s.Create(ctx, object)).To(Succeed())
	}
	busy, err := cp.ClientAs(busyUser)
	Expect(err).NotTo(HaveOccurred())
	var rejects atomic.Bool
	for n := range busyRequests {
		go func() {
			for object := testkinds.NewDeployment(ns, fmt.Sprintf("busy-%d", n), 0); ; time.Sleep(50 * time.Millisecond) {
				select {
				case <-released:
					return
				default:
				}
				if apierrors.IsTooManyRequests(busy.Create(ctx, object.DeepCopy())) {
					rejects.Store(true)
				}
			}
		}()
	}
	Eventually(ctx, rejects.Load).WithTimeout(time.Minute).Should(BeTrue(), "the API server accepts all requests")
	return accept
}
