package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/jobstate"
	testkinds "github.com/example/memcached-operator/test/kinds"
)

// kind is a kind with the functions that only these specs need.
type kind struct {
	testkinds.Kind
	// hurry changes the schedule from hours to seconds; nil for a kind without a schedule.
	hurry func(object client.Object)
	// serve checks that the pods serve requests, or that Jobs run.
	serve func(ctx context.Context, object client.Object)
}

var kinds = []kind{foos, memcacheds, cronJobs}

// foos have Deployments of the same name.
var foos = kind{
	Kind: testkinds.Foo,
	serve: func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		pods, err := podsOf(ctx, object)
		Expect(err).NotTo(HaveOccurred())
		var urls []string
		for _, pod := range pods {
			urls = append(urls, "http://"+net.JoinHostPort(pod.Status.PodIP, "80"))
		}
		Expect(ask(ctx, object.GetNamespace(), "", append([]string{"http"}, urls...)...)).To(ContainSubstring("200 OK"))
	},
}

var memcacheds = kind{
	Kind: testkinds.Memcached,
	serve: func(ctx context.Context, object client.Object) {
		GinkgoHelper()
		mc := object.(*cachev1alpha1.Memcached)
		answer := ask(ctx, mc.Namespace, "", "memcached", fmt.Sprintf("%s.%s.svc", mc.Status.ServiceName, mc.Namespace))
		Expect(lines(answer)).To(HaveLen(int(mc.Spec.Size)), "each node answers at its own name")
	},
}

// cronJobs create no Job within an hour, unless hurry is called. Their Jobs print hello; those of the
// sample print the usage of the agent.
var cronJobs = func() kind {
	k := kind{
		Kind:  testkinds.CronJob,
		hurry: func(object client.Object) { object.(*tutorialv1.CronJob).Spec.Schedule = "@every 10s" },
		serve: func(ctx context.Context, object client.Object) {
			GinkgoHelper()
			cj := object.(*tutorialv1.CronJob)
			schedule := cj.Spec.Schedule
			change(ctx, cj, func() { cj.Spec.Schedule = "@every 10s" })
			Expect(logOfJob(ctx, awaitJob(ctx, cj, jobstate.IsComplete))).To(
				Or(ContainSubstring("hello\n"), ContainSubstring("Usage of agent:\n")))
			change(ctx, cj, func() { cj.Spec.Schedule = schedule })
		},
	}
	k.Make = func(namespace, name string, _ int32) client.Object {
		return newCronJob(namespace, name, "@every 1h", "echo hello")
	}
	return k
}()

// definitions returns the names of the operator's CustomResourceDefinitions.
func definitions() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.CRD())
	}
	return names
}

// kindsOf returns the kinds of a release, and those that were added later.
func kindsOf(release string) (had, added []kind) {
	GinkgoHelper()
	for _, k := range kinds {
		_, err := os.Stat(filepath.Join(root, "config/catalog/released", release, "manifests",
			k.GroupVersion.Group+"_"+k.Resource+".yaml"))
		if err == nil {
			had = append(had, k)
			continue
		}
		Expect(err).To(MatchError(os.ErrNotExist))
		added = append(added, k)
	}
	return had, added
}

// settled fails unless the operator has observed the latest generation of a resource and reports it as available.
func settled(ctx context.Context, k kind, object client.Object) error {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	generation, conditions := k.Status(object).ObservedGeneration, k.Conditions(object)
	if generation != object.GetGeneration() {
		return fmt.Errorf("%s %s: generation %d is not observed yet, %d is", k.Name, object.GetName(), object.GetGeneration(),
			generation)
	}
	for condition, want := range map[string]metav1.ConditionStatus{
		"Available": metav1.ConditionTrue, "Progressing": metav1.ConditionFalse, "Degraded": metav1.ConditionFalse,
	} {
		if !meta.IsStatusConditionPresentAndEqual(conditions, condition, want) {
			return fmt.Errorf("%s %s: %s is not %s: %+v", k.Name, object.GetName(), condition, want,
				meta.FindStatusCondition(conditions, condition))
		}
	}
	return nil
}

// awaitSettled waits until resources have settled.
func awaitSettled(ctx context.Context, k kind, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(settled).WithContext(ctx).WithArguments(k, object).Should(Succeed())
	}
}

// change patches a resource with the changes that mutate makes.
func change(ctx context.Context, object client.Object, mutate func()) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	mutate()
	Expect(kube.Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

// children returns all objects in a namespace of the resources that the operator creates.
func children(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	for _, child := range testkinds.ChildResources() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(child.GroupVersion().WithKind(child.Kind + "List"))
		if err := kube.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			item.SetGroupVersionKind(child.GroupVersion().WithKind(child.Kind))
			all = append(all, item)
		}
	}
	return all, nil
}

// childrenOf returns the children of a resource.
func childrenOf(ctx context.Context, object client.Object) ([]metav1.PartialObjectMetadata, error) {
	all, err := children(ctx, object.GetNamespace())
	return slices.DeleteFunc(all, func(child metav1.PartialObjectMetadata) bool {
		return !metav1.IsControlledBy(&child, object)
	}), err
}

// podsOf returns the pods of the Deployment of a resource that are not being deleted.
func podsOf(ctx context.Context, object client.Object) ([]corev1.Pod, error) {
	var deployment appsv1.Deployment
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), &deployment); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(&deployment, object) {
		return nil, fmt.Errorf("Deployment %s is not controlled by %T %s", deployment.Name, object, object.GetName())
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := kube.List(ctx, &pods, client.InNamespace(object.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }), nil
}

// awaitNoChildren waits until a namespace has no children of resources, and none of their children.
func awaitNoChildren(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) (string, error) {
		return try(ctx, os.Getenv("KUBECTL"), "get", "--namespace="+namespace, "--output=name",
			"pods,jobs,deployments,replicasets,services,poddisruptionbudgets")
	}).WithContext(ctx).WithPolling(time.Second).Should(BeEmpty())
}

// tokenFile has the token of a pod's service account.
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// ask runs the program of probe/ in a pod, as a service account if one is named, and returns its output. It fails if
// the program does.
func ask(ctx context.Context, namespace, serviceAccount string, args ...string) string {
	GinkgoHelper()
	pod := probe(namespace, args...)
	pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = serviceAccount, ptr.To(serviceAccount != "")
	return answerOf(ctx, pod)
}

// answerOf runs a pod and returns its output. It fails if the pod does.
func answerOf(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	create(ctx, pod)
	defer func() { _ = kube.Delete(ctx, pod, client.GracePeriodSeconds(0)) }()
	Eventually(phaseOf).WithContext(ctx).WithArguments(pod).Should(BeElementOf(corev1.PodSucceeded, corev1.PodFailed))
	answer := logOf(ctx, pod)
	AddReportEntry(fmt.Sprintf("probe %s: %s", strings.Join(pod.Spec.Containers[0].Args, " "), answer),
		ReportEntryVisibilityFailureOrVerbose)
	Expect(pod.Status.Phase).To(Equal(corev1.PodSucceeded), answer)
	return answer
}

// probe returns a pod that runs the program of probe/.
func probe(namespace string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: ptr.To(false),
			Containers: []corev1.Container{{Name: "probe", Image: image("-probe"), Args: args,
				SecurityContext: restricted()}},
		},
	}
}

// logOf returns the log of a pod.
func logOf(ctx context.Context, pod *corev1.Pod) (log string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		content, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		log = string(content)
		return err
	}).WithContext(ctx).Should(Succeed())
	return log
}

// restricted returns the security context that Pod Security "restricted" requires.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot:             ptr.To(true),
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// lines returns the lines of a text without empty ones.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
