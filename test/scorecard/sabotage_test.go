package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// Each of these has the operator seem to be broken in one namespace, until the spec is over.

func doNotMake(ctx context.Context, namespace string) {
	GinkgoHelper()
	for resource, object := range map[schema.GroupResource]client.Object{
		deployments: newDeployment(namespace), {Group: "batch", Resource: "jobs"}: theirs(kinds.NewJob(namespace, "probe")),
	} {
		forbid(ctx, namespace, admissionregistrationv1.Create, resource, "true", func(operator client.Client) error {
			return operator.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		})
	}
}

func doNotChange(ctx context.Context, namespace string) {
	GinkgoHelper()
	probe := newDeployment(namespace)
	Expect(k8s.Create(ctx, probe)).To(Succeed())
	forbid(ctx, namespace, admissionregistrationv1.Update, deployments, "true", func(operator client.Client) error {
		changed := probe.DeepCopy()
		changed.Labels["a"] = "b"
		return operator.Patch(ctx, changed, client.MergeFrom(probe), client.DryRunAll)
	})
	Expect(k8s.Delete(ctx, probe)).To(Succeed())
}

// doNotAnswer allows one answer to each resource, the first.
func doNotAnswer(ctx context.Context, namespace string) {
	GinkgoHelper()
	doNotChange(ctx, namespace)
	probe := kinds.CronJob.Make(namespace, "probe", 0).(*tutorialv1.CronJob)
	Expect(k8s.Create(ctx, probe)).To(Succeed())
	Eventually(ctx, func() int64 {
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(probe), probe)).To(Succeed())
		return probe.Status.ObservedGeneration
	}).Should(BeNumerically(">", 0))
	forbid(ctx, namespace, admissionregistrationv1.Update,
		tutorialv1.GroupVersion.WithResource("cronjobs/status").GroupResource(),
		"has(oldObject.status) && has(oldObject.status.observedGeneration)", func(operator client.Client) error {
			return operator.Status().Patch(ctx, probe.DeepCopy(), anotherStatus, client.DryRunAll)
		})
	Expect(k8s.Delete(ctx, probe)).To(Succeed())
}

// doNotMakeAgain allows one Deployment under each name: a ConfigMap remembers those that there have been.
func doNotMakeAgain(ctx context.Context, namespace string) {
	GinkgoHelper()
	names := forbid(ctx, namespace, admissionregistrationv1.Create, deployments, "object.metadata.name in params.data",
		func(operator client.Client) error {
			return operator.Create(ctx, newDeployment(namespace), client.DryRunAll)
		})
	meanwhile(func(ctx context.Context) {
		var deployments appsv1.DeploymentList
		if k8s.List(ctx, &deployments, client.InNamespace(namespace)) != nil {
			return
		}
		known := names.DeepCopy()
		for _, deployment := range deployments.Items {
			known.Data[deployment.Name] = ""
		}
		if len(known.Data) > len(names.Data) && k8s.Patch(ctx, known, client.MergeFrom(names)) == nil {
			names = known
		}
	})
}

func labelAllAlike(ctx context.Context, namespace string) {
	GinkgoHelper()
	distort(ctx, namespace, admissionregistrationv1.Create, "apps", "deployments", `[
		JSONPatch{op: "replace", path: "/spec/selector/matchLabels", value: {"app": "shared"}},
		JSONPatch{op: "replace", path: "/spec/template/metadata/labels", value: {"app": "shared"}}]`,
		func() bool {
			probe := newDeployment(namespace)
			Expect(k8s.Create(ctx, probe, client.DryRunAll)).To(Succeed())
			return probe.Spec.Selector.MatchLabels["app"] == "shared"
		})
}

func holdPods(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(k8s.Patch(ctx, namespace,
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+testenv.HoldPods+`":""}}}`)))).To(Succeed())
}

func exaggerate(ctx context.Context, namespace string) {
	GinkgoHelper()
	fields := map[string]string{"Foo": "availableReplicas", "Memcached": "readyNodes", "CronJob": "activeJobs"}
	for _, k := range allKinds {
		probe := k.Make(namespace, "probe", 0)
		Expect(k8s.Create(ctx, probe)).To(Succeed())
		distort(ctx, namespace, admissionregistrationv1.Update, k.GroupVersion.Group, k.Resource+"/status",
			fmt.Sprintf(`[JSONPatch{op: "add", path: "/status/%s", value: 99}]`, fields[k.Name]),
			func() bool {
				changed := probe.DeepCopyObject().(client.Object)
				Expect(k8s.Status().Patch(ctx, changed, anotherStatus, client.DryRunAll)).To(Succeed())
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
				Expect(err).NotTo(HaveOccurred())
				value, _, err := unstructured.NestedInt64(content, "status", fields[k.Name])
				Expect(err).NotTo(HaveOccurred())
				return value == 99
			})
		Expect(k8s.Delete(ctx, probe)).To(Succeed())
	}
}

// anotherStatus is a change that makes no sense and is one.
var anotherStatus = client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":99,"activeJobs":0}}`))

// adopt gives every child of somebody else to the resource that wants its name. It asks for little at a time: it has to
// be faster than the test, on a busy machine too.
func adopt(ctx context.Context, namespace string) {
	GinkgoHelper()
	meanwhile(func(ctx context.Context) {
		owners := map[string]client.Object{}
		for _, object := range itemsOf(ctx, namespace, &samplev1alpha1.FooList{}, &cachev1alpha1.MemcachedList{},
			&tutorialv1.CronJobList{}) {
			owners[object.GetName()] = object
		}
		for _, foreign := range itemsOf(ctx, namespace, &appsv1.DeploymentList{}, &batchv1.JobList{}) {
			owner := owners[tick.ReplaceAllString(foreign.GetName(), "")]
			if owner != nil && foreign.GetLabels()["somebody"] != "" && len(foreign.GetOwnerReferences()) == 0 {
				adopted := foreign.DeepCopyObject().(client.Object)
				_ = controllerutil.SetControllerReference(owner, adopted, k8s.Scheme())
				_ = k8s.Patch(ctx, adopted, client.MergeFrom(foreign))
			}
		}
	})
}

// itemsOf returns what lists have in a namespace.
func itemsOf(ctx context.Context, namespace string, lists ...client.ObjectList) (items []client.Object) {
	for _, list := range lists {
		_ = k8s.List(ctx, list, client.InNamespace(namespace))
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			items = append(items, item.(client.Object))
			return nil
		})
	}
	return items
}

// tick is what the name of a Job has more than that of its CronJob.
var tick = regexp.MustCompile(`-[0-9]{8,}$`)

// runAgain makes every Job again that is deleted while its owner is there.
func runAgain(ctx context.Context, namespace string) {
	GinkgoHelper()
	known := map[string]*batchv1.Job{}
	meanwhile(func(ctx context.Context) {
		var jobs batchv1.JobList
		if k8s.List(ctx, &jobs, client.InNamespace(namespace)) != nil {
			return
		}
		gone := maps.Clone(known)
		for _, job := range jobs.Items {
			delete(gone, job.Name)
			again := theirs(kinds.NewJob(namespace, job.Name))
			again.Annotations, again.OwnerReferences = job.Annotations, job.OwnerReferences
			known[job.Name] = again
		}
		for _, job := range gone {
			_ = k8s.Create(ctx, job.DeepCopy())
		}
	})
}

// clearOthers deletes the Jobs of every CronJob that has been changed less often than another.
func clearOthers(ctx context.Context, namespace string) {
	GinkgoHelper()
	meanwhile(func(ctx context.Context) {
		var cronJobs tutorialv1.CronJobList
		var jobs batchv1.JobList
		if k8s.List(ctx, &cronJobs, client.InNamespace(namespace)) != nil ||
			k8s.List(ctx, &jobs, client.InNamespace(namespace)) != nil {
			return
		}
		var most int64
		for _, cj := range cronJobs.Items {
			most = max(most, cj.Generation)
		}
		for _, cj := range cronJobs.Items {
			for _, job := range jobs.Items {
				if most > 2 && cj.Generation < most && metav1.IsControlledBy(&job, &cj) {
					_ = k8s.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground))
				}
			}
		}
	})
}

// scaleAllAlike scales every Deployment as the largest one of its application.
func scaleAllAlike(ctx context.Context, namespace string) {
	GinkgoHelper()
	meanwhile(func(ctx context.Context) {
		var deployments appsv1.DeploymentList
		if k8s.List(ctx, &deployments, client.InNamespace(namespace)) != nil {
			return
		}
		most := map[string]int32{}
		for _, deployment := range deployments.Items {
			app := deployment.Labels["app.kubernetes.io/name"]
			most[app] = max(most[app], *deployment.Spec.Replicas)
		}
		for _, deployment := range deployments.Items {
			if app := deployment.Labels["app.kubernetes.io/name"]; *deployment.Spec.Replicas < most[app] {
				scaled := deployment.DeepCopy()
				scaled.Spec.Replicas = ptr.To(most[app])
				_ = k8s.Patch(ctx, scaled, client.MergeFrom(&deployment))
			}
		}
	})
}

// meanwhile does something over and over until the spec is over.
func meanwhile(do func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			do(ctx)
			time.Sleep(10 * time.Millisecond) // many do it at the same time, and each must have its turn
		}
	}()
	DeferCleanup(func() {
		stop()
		<-done
	})
}

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// forbid has the API server refuse an operation of the operator on a resource that a condition in CEL is true of, as if
// it had no right to it, and waits until a probe is told so. The parameters of the condition are the data of the
// ConfigMap it returns.
func forbid(ctx context.Context, namespace string, operation admissionregistrationv1.OperationType,
	resource schema.GroupResource, condition string,
	probe func(operator client.Client) error) *corev1.ConfigMap {
	GinkgoHelper()
	name := strings.ReplaceAll(resource.Resource, "/", "-")
	params := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string]string{"probe": ""}}
	put(ctx, params)
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "forbid-" + namespace + "-" + name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: in(namespace, operation, resource.Group, resource.Resource),
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username != '%s' || !(%s)", testenv.OperatorUser, condition),
				Message:    "sabotage"}},
		},
	}
	put(ctx, policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			ParamRef: &admissionregistrationv1.ParamRef{Name: params.Name,
				ParameterNotFoundAction: ptr.To(admissionregistrationv1.DenyAction)}},
	})
	operator, err := cp.ClientAs(testenv.OperatorUser)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() error { return probe(operator) }).Should(MatchError(ContainSubstring("sabotage")),
		"the API server does not take the policy up")
	return params
}

// distort has the API server change what is written to a resource, by a JSON patch in CEL, and waits until a probe sees
// it.
func distort(ctx context.Context, namespace string, operation admissionregistrationv1.OperationType, group, resource,
	patch string, probe func() bool) {
	GinkgoHelper()
	name := fmt.Sprintf("distort-%s-%s", namespace, strings.ReplaceAll(resource, "/", "-"))
	put(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints:   in(namespace, operation, group, resource),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch}}},
		},
	}, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	})
	Eventually(ctx, probe).Should(BeTrue(), "the API server does not take the policy up")
}

// put creates objects, until the spec is over.
func put(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(k8s.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, object)).To(Succeed()) })
	}
}

// in returns what a policy for an operation on a resource in a namespace matches.
func in(namespace string, operation admissionregistrationv1.OperationType, group,
	resource string) *admissionregistrationv1.MatchResources {
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
	return theirs(kinds.NewDeployment(namespace, "probe", 0))
}
