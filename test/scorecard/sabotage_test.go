package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// Each of these functions makes the operator appear broken in one namespace, until the spec is over.

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

func rejectCreates(ctx context.Context, namespace string) {
	GinkgoHelper()
	for resource, object := range map[string]client.Object{
		"apps/deployments": newDeployment(namespace), "batch/jobs": unmanaged(kinds.NewJob(namespace, "probe")),
	} {
		forbid(ctx, namespace, create, resource, "true", func() error {
			return operator.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		})
	}
}

func rejectUpdates(ctx context.Context, namespace string) {
	GinkgoHelper()
	probe := newDeployment(namespace)
	Expect(k8s.Create(ctx, probe)).To(Succeed())
	forbid(ctx, namespace, update, "apps/deployments", "true", func() error {
		changed := probe.DeepCopy()
		changed.Labels["a"] = "b"
		return operator.Patch(ctx, changed, client.MergeFrom(probe), client.DryRunAll)
	})
	Expect(k8s.Delete(ctx, probe)).To(Succeed())
}

// rejectLaterUpdates rejects updates of Deployments, and of the status of a CronJob after the first.
func rejectLaterUpdates(ctx context.Context, namespace string) {
	GinkgoHelper()
	rejectUpdates(ctx, namespace)
	probe := kinds.CronJob.Make(namespace, "probe", 0).(*tutorialv1.CronJob)
	Expect(k8s.Create(ctx, probe)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(probe), probe)).To(Succeed())
		g.Expect(probe.Status.ObservedGeneration).To(BeNumerically(">", 0))
	}).Should(Succeed())
	forbid(ctx, namespace, update, tutorialv1.GroupVersion.Group+"/cronjobs/status",
		"has(oldObject.status) && has(oldObject.status.observedGeneration)", func() error {
			return operator.Status().Patch(ctx, probe.DeepCopy(), anotherStatus, client.DryRunAll)
		})
	Expect(k8s.Delete(ctx, probe)).To(Succeed())
}

// rejectRecreation allows one Deployment of each name: the names used so far are stored in a ConfigMap.
func rejectRecreation(ctx context.Context, namespace string) {
	GinkgoHelper()
	names := forbid(ctx, namespace, create, "apps/deployments", "object.metadata.name in params.data",
		func() error { return operator.Create(ctx, newDeployment(namespace), client.DryRunAll) })
	afterChanges(namespace, func(ctx context.Context) {
		known := names.DeepCopy()
		for _, deployment := range itemsOf(ctx, namespace, &appsv1.DeploymentList{}) {
			known.Data[deployment.GetName()] = ""
		}
		if k8s.Patch(ctx, known, client.MergeFrom(names)) == nil {
			names = known
		}
	}, &appsv1.DeploymentList{})
}

func shareLabels(ctx context.Context, namespace string) {
	GinkgoHelper()
	distort(ctx, namespace, create, "apps/deployments", `[
		JSONPatch{op: "replace", path: "/spec/selector/matchLabels", value: {"app": "shared"}},
		JSONPatch{op: "replace", path: "/spec/template/metadata/labels", value: {"app": "shared"}}]`,
		func(g Gomega) {
			probe := newDeployment(namespace)
			g.Expect(k8s.Create(ctx, probe, client.DryRunAll)).To(Succeed())
			g.Expect(probe.Spec.Selector.MatchLabels).To(HaveKeyWithValue("app", "shared"))
		})
}

func holdPods(ctx context.Context, namespace string) { label(ctx, namespace, testenv.HoldPods) }

// label adds a label to a namespace.
func label(ctx context.Context, name, label string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(k8s.Patch(ctx, namespace,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+label+`":""}}}`)))).To(Succeed())
}

func falsifyStatus(ctx context.Context, namespace string) {
	GinkgoHelper()
	fields := map[string]string{"Foo": "availableReplicas", "Memcached": "readyNodes", "CronJob": "activeJobs"}
	for _, k := range unvaried {
		probe := k.Make(namespace, "probe", 0)
		Expect(k8s.Create(ctx, probe)).To(Succeed())
		distort(ctx, namespace, update, k.GroupVersion.Group+"/"+k.Resource+"/status",
			fmt.Sprintf(`[JSONPatch{op: "add", path: "/status/%s", value: 99}]`, fields[k.Name]),
			func(g Gomega) {
				changed := probe.DeepCopyObject().(client.Object)
				g.Expect(k8s.Status().Patch(ctx, changed, anotherStatus, client.DryRunAll)).To(Succeed())
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
				g.Expect(err).NotTo(HaveOccurred())
				value, _, err := unstructured.NestedInt64(content, "status", fields[k.Name])
				g.Expect(value, err).To(Equal(int64(99)))
			})
		Expect(k8s.Delete(ctx, probe)).To(Succeed())
	}
}

// anotherStatus is any change of a status.
var anotherStatus = client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":99,"activeJobs":0}}`))

// runSuffix is what the name of a Job has more than that of its CronJob.
var runSuffix = regexp.MustCompile(`-[0-9]{8,}$`)

// nameTaken is a status that reports a child that the resource does not control.
var nameTaken = client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Degraded",
	"status":"True","reason":"NameTaken","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))

// adopt makes the resource that wants the name of an unmanaged child its owner. The operator can report the name only
// after that: otherwise, the test could be over before the adoption.
func adopt(ctx context.Context, namespace string) {
	GinkgoHelper()
	adopted := make([]*corev1.ConfigMap, 0, len(unvaried)) // their data are the names of resources
	for _, k := range unvaried {
		early := k.Make(namespace, "early", 0)
		Expect(k8s.Create(ctx, early)).To(Succeed())
		adopted = append(adopted, forbid(ctx, namespace, update, k.GroupVersion.Group+"/"+k.Resource+"/status",
			"object.status.conditions.exists(c, c.reason == 'NameTaken') && !(object.metadata.name in params.data)",
			func() error {
				return operator.Status().Patch(ctx, early.DeepCopyObject().(client.Object), nameTaken, client.DryRunAll)
			}))
		Expect(k8s.Delete(ctx, early)).To(Succeed())
	}
	owners := []client.ObjectList{&samplev1alpha1.FooList{}, &cachev1alpha1.MemcachedList{}, &tutorialv1.CronJobList{}}
	children := []client.ObjectList{&appsv1.DeploymentList{}, &batchv1.JobList{}}
	afterChanges(namespace, func(ctx context.Context) {
		byName := map[string]client.Object{}
		for _, object := range itemsOf(ctx, namespace, owners...) {
			byName[object.GetName()] = object
		}
		for _, child := range itemsOf(ctx, namespace, children...) {
			owner := byName[runSuffix.ReplaceAllString(child.GetName(), "")]
			if owner == nil || child.GetLabels()["another"] == "" || len(child.GetOwnerReferences()) > 0 {
				continue
			}
			owned := child.DeepCopyObject().(client.Object)
			_ = controllerutil.SetOwnerReference(owner, owned, k8s.Scheme())
			if k8s.Patch(ctx, owned, client.MergeFrom(child)) != nil {
				continue
			}
			for _, names := range adopted {
				_ = k8s.Patch(ctx, names.DeepCopy(),
					client.RawPatch(types.MergePatchType, []byte(`{"data":{"`+owner.GetName()+`":""}}`)))
			}
		}
	}, append(owners, children...)...)
}

// runAgain creates every Job again that is deleted.
func runAgain(_ context.Context, namespace string) {
	GinkgoHelper()
	onEvents(namespace, func(ctx context.Context, event watch.Event) {
		if job, ok := event.Object.(*batchv1.Job); ok && event.Type == watch.Deleted {
			again := unmanaged(kinds.NewJob(namespace, job.Name))
			again.Annotations, again.OwnerReferences = job.Annotations, job.OwnerReferences
			_ = k8s.Create(ctx, again)
		}
	}, &batchv1.JobList{})
}

// deleteOthersJobs deletes the Jobs of every CronJob that has been changed less often than another.
func deleteOthersJobs(_ context.Context, namespace string) {
	GinkgoHelper()
	afterChanges(namespace, func(ctx context.Context) {
		cronJobs, most := itemsOf(ctx, namespace, &tutorialv1.CronJobList{}), int64(2)
		for _, cronJob := range cronJobs {
			most = max(most, cronJob.GetGeneration())
		}
		jobs := itemsOf(ctx, namespace, &batchv1.JobList{})
		for _, cronJob := range cronJobs {
			for _, job := range jobs {
				if most > 2 && cronJob.GetGeneration() < most && metav1.IsControlledBy(job, cronJob) {
					_ = k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
				}
			}
		}
	}, &tutorialv1.CronJobList{})
}

// scaleOthers scales every Deployment as the largest one of its application.
func scaleOthers(_ context.Context, namespace string) {
	GinkgoHelper()
	const app = "app.kubernetes.io/name"
	afterChanges(namespace, func(ctx context.Context) {
		deployments, most := itemsOf(ctx, namespace, &appsv1.DeploymentList{}), map[string]int32{}
		for _, object := range deployments {
			most[object.GetLabels()[app]] = max(most[object.GetLabels()[app]], *object.(*appsv1.Deployment).Spec.Replicas)
		}
		for _, object := range deployments {
			scaled := object.DeepCopyObject().(*appsv1.Deployment)
			scaled.Spec.Replicas = ptr.To(most[scaled.Labels[app]])
			_ = k8s.Patch(ctx, scaled, client.MergeFrom(object))
		}
	}, &appsv1.DeploymentList{})
}

// itemsOf returns the objects of lists in a namespace.
func itemsOf(ctx context.Context, namespace string, lists ...client.ObjectList) (items []client.Object) {
	for _, list := range lists {
		_ = k8s.List(ctx, list, client.InNamespace(namespace))
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			items = append(items, item.DeepCopyObject().(client.Object))
			return nil
		})
	}
	return items
}

// afterChanges calls a function after changes of objects in a namespace, until the spec is over.
func afterChanges(namespace string, do func(ctx context.Context), lists ...client.ObjectList) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	DeferCleanup(running.Wait)
	DeferCleanup(stop)
	changed := make(chan struct{}, 1)
	onEvents(namespace, func(context.Context, watch.Event) {
		select {
		case changed <- struct{}{}:
		default: // the function will be called anyway
		}
	}, lists...)
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				do(ctx)
			}
		}
	})
}

// onEvents calls a function with every event of objects in a namespace, until the spec is over.
func onEvents(namespace string, do func(ctx context.Context, event watch.Event), lists ...client.ObjectList) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	DeferCleanup(running.Wait)
	DeferCleanup(stop)
	for _, list := range lists {
		watcher, err := k8s.Watch(ctx, list, client.InNamespace(namespace))
		Expect(err).NotTo(HaveOccurred())
		running.Go(func() {
			for event := range watcher.ResultChan() {
				do(ctx, event)
			}
		})
	}
}

// forbid makes the API server reject an operation of the operator on a resource, group/resource, if a CEL expression is
// true, and waits until a probe is rejected. It returns the ConfigMap whose data are the parameters of the expression.
func forbid(ctx context.Context, namespace string, operation admissionregistrationv1.OperationType,
	resource, expression string, probe func() error) *corev1.ConfigMap {
	GinkgoHelper()
	name := strings.ReplaceAll(resource, "/", "-")
	params := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{"probe": ""}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "forbid-" + namespace + "-" + name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: matching(namespace, operation, resource),
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username != '%s' || !(%s)", testenv.OperatorUser, expression),
				Message:    "sabotage"}},
		},
	}
	put(ctx, params, policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			ParamRef: &admissionregistrationv1.ParamRef{Name: params.Name,
				ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction)}},
	})
	Eventually(ctx, probe).Should(MatchError(ContainSubstring("sabotage")), "the API server does not apply the policy")
	return params
}

// distort makes the API server apply a JSON patch in CEL to what is written to a resource, group/resource, and waits
// until a probe observes it.
func distort(ctx context.Context, namespace string, operation admissionregistrationv1.OperationType,
	resource, patch string, probe func(g Gomega)) {
	GinkgoHelper()
	name := fmt.Sprintf("distort-%s-%s", namespace, strings.ReplaceAll(resource, "/", "-"))
	put(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   matching(namespace, operation, resource),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch}}},
		},
	}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	})
	Eventually(ctx, probe).Should(Succeed(), "the API server does not apply the policy")
}

// put creates objects that exist until the spec is over.
func put(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(k8s.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, object)).To(Succeed()) })
	}
}

// matching returns what a policy for an operation on a resource, group/resource, in a namespace matches.
func matching(namespace string, operation admissionregistrationv1.OperationType,
	resource string) *admissionregistrationv1.MatchResources {
	group, resource, _ := strings.Cut(resource, "/")
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{operation},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"},
					Resources: []string{resource}},
			},
		}},
	}
}

// newDeployment returns one that the operator does not control.
func newDeployment(namespace string) *appsv1.Deployment {
	return unmanaged(kinds.NewDeployment(namespace, "probe", 0))
}
