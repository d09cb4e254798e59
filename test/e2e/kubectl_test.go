package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// Names in config/default.
const (
	operatorNamespace = "memcached-operator-system"
	managerName       = "memcached-operator-controller-manager"
	metricsService    = "memcached-operator-controller-manager-metrics-service"
	metricsReader     = "memcached-operator-metrics-reader"
	leaseName         = "memcached-operator.example.com"
)

var _ = Describe("Installed with kubectl", Ordered, func() {
	var namespace string
	var before sets.Set[string]

	BeforeAll(func(ctx SpecContext) {
		var err error
		before, err = inventory(ctx)
		Expect(err).NotTo(HaveOccurred())
		deploy(ctx)
		namespace = newNamespaces(ctx, restrictedLevel, "tutorial-")[0]
	}, NodeTimeout(2*stepTimeout))

	It("reconciles the samples as the tutorial shows", func(ctx SpecContext) {
		in := "--namespace=" + namespace
		kubectl(ctx, "apply", in, "-k", "config/samples")
		useJobImage(ctx, namespace)
		kubectl(ctx, "wait", in, "--for=condition=Available", "--timeout=180s", "memcached/memcached-sample",
			"foo/foo-sample", sampleCronJob)
		Expect(kubectl(ctx, "get", in, "deployment", "memcached-sample", "-o", "jsonpath={.spec.replicas}")).To(Equal("3"))
		Eventually(nodesAreThePods).WithContext(ctx).WithArguments(namespace, 3).Should(Succeed())

		kubectl(ctx, "patch", in, "memcached", "memcached-sample", "-p", `{"spec":{"size": 5}}`, "--type=merge")
		Eventually(nodesAreThePods).WithContext(ctx).WithArguments(namespace, 5).Should(Succeed())
		Expect(kubectl(ctx, "get", in, "deployment", "memcached-sample", "-o", "jsonpath={.status.readyReplicas}")).
			To(Equal("5"))

		By("sending requests to every node, and running a Job")
		for _, k := range kinds {
			object := k.Make(namespace, strings.ToLower(k.Name)+"-sample", 0)
			awaitSettled(ctx, k, object)
			k.serve(ctx, object)
		}

		kubectl(ctx, "scale", in, "memcached/memcached-sample", "--replicas=2")
		Eventually(nodesAreThePods).WithContext(ctx).WithArguments(namespace, 2).Should(Succeed())
		kubectl(ctx, "delete", in, "-k", "config/samples")
		awaitNoChildren(ctx, namespace)
	}, SpecTimeout(2*stepTimeout))

	It("serves metrics over TLS, only to authorized clients", func(ctx SpecContext) {
		url := fmt.Sprintf("https://%s.%s.svc:8443/metrics", metricsService, operatorNamespace)
		for _, name := range []string{"reader", "unauthorized"} {
			create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-reads-metrics"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "reader"}},
		}
		create(ctx, binding)
		cleanUp(func(ctx context.Context) { deleteAll(ctx, binding) })

		var status, metrics int
		_, err := fmt.Sscan(ask(ctx, namespace, "reader", "metrics", url, tokenFile), &status, &metrics)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(200))
		Expect(metrics).To(BeNumerically(">", 50), "metrics")
		Expect(ask(ctx, namespace, "reader", "metrics", url)).To(HavePrefix("401 "), "without its token")
		Expect(ask(ctx, namespace, "unauthorized", "metrics", url, tokenFile)).To(HavePrefix("403 "))
	}, SpecTimeout(stepTimeout))

	It("keeps its leader when its container crashes, and elects another when its pod is gone", func(ctx SpecContext) {
		var first corev1.Pod
		name, _ := leader(ctx)
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, &first)).To(Succeed())
		b := startBeacon(ctx, namespace)
		crash(ctx, &first, "manager")
		b.awaitChange(ctx)
		measure("the leader's container crashed: a change waited %.1f s at most", b.stop().Seconds())
		name, _ = leader(ctx)
		Expect(name).To(Equal(first.Name))

		b = startBeacon(ctx, namespace)
		crash(ctx, &first, "manager")
		// Otherwise the restarted container might win the election.
		kubectl(ctx, "delete", "pod", "--namespace="+operatorNamespace, "--grace-period=0", "--force", first.Name)
		Eventually(func(ctx context.Context) string {
			name, _ := leader(ctx)
			return name
		}).WithContext(ctx).ShouldNot(Or(BeEmpty(), Equal(first.Name)))
		b.awaitChange(ctx)
		measure("the leader's pod crashed and was deleted: a change waited %.1f s at most (the lease alone is 15 s)",
			b.stop().Seconds())
	}, SpecTimeout(stepTimeout))

	It("leaves nothing behind after make undeploy", func(ctx SpecContext) {
		run(ctx, "make", "undeploy")
		deleteAll(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		awaitNothingBut(ctx, before)
	}, SpecTimeout(stepTimeout))
})

// deploy installs the operator with kubectl until the container of specs ends.
func deploy(ctx context.Context) {
	GinkgoHelper()
	cleanUp(func(ctx context.Context) { run(ctx, "make", "undeploy") })
	DeferOnFailure(func(ctx SpecContext) { dump(ctx, operatorNamespace) }, NodeTimeout(time.Minute))
	settings := []string{"deploy", "IMG=" + image("")}
	for _, variable := range operandImages() {
		settings = append(settings, variable.Name+"="+variable.Value)
	}
	run(ctx, "make", settings...)
	kubectl(ctx, "rollout", "status", "--namespace="+operatorNamespace, "--timeout=180s", "deployment/"+managerName)
}

// leader returns the name of the leading pod, empty if there is none, and the time it acquired the lease.
func leader(ctx context.Context) (pod string, since time.Time) {
	var lease coordinationv1.Lease
	if err := kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: leaseName}, &lease); err != nil {
		return "", time.Time{}
	}
	pod, _, _ = strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return pod, ptr.Deref(lease.Spec.AcquireTime, metav1.MicroTime{}).Time
}

// crash terminates the program in a container of a pod, such as a manager that then cannot release its lease: an
// ephemeral container sends it the signal that terminates Go programs at once.
func crash(ctx context.Context, pod *corev1.Pod, container string) {
	GinkgoHelper()
	restarts := int32(0)
	Eventually(func(ctx context.Context) error { // the kubelet writes the status at the same time
		if err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		restarts = statusOf(pod, container).RestartCount
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			TargetContainerName: container,
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name:  fmt.Sprintf("crash-%d", len(pod.Spec.EphemeralContainers)),
				Image: image("-probe"), Args: []string{"crash"}, SecurityContext: restricted(),
			},
		})
		return kube.SubResource("ephemeralcontainers").Update(ctx, pod)
	}).WithContext(ctx).Should(Succeed())
	Eventually(func(ctx context.Context) (*corev1.ContainerStateTerminated, error) {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return nil, err
		}
		status := statusOf(pod, container)
		if status.State.Terminated == nil && status.RestartCount == restarts {
			return nil, nil
		}
		return cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated), nil
	}).WithContext(ctx).Should(HaveField("ExitCode", BeEquivalentTo(2)))
}

// statusOf returns the status of a container, init container or sidecar.
func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if status.Name == container {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

const sampleCronJob = "cronjob.batch.tutorial.kubebuilder.io/cronjob-sample"

// useJobImage sets an image that the cluster can pull for the Jobs of the sample. The test cluster has a mirror.
func useJobImage(ctx context.Context, namespace string) {
	GinkgoHelper()
	if os.Getenv("TEST_CLUSTER") == "dedicated" {
		return
	}
	const path = "/spec/jobTemplate/spec/template/spec/containers/0/image"
	kubectl(ctx, "patch", "--namespace="+namespace, sampleCronJob, "--type=json",
		fmt.Sprintf(`--patch=[{"op": "replace", "path": %q, "value": %q}]`, path, agentImage()))
	// A Job that was created before would never complete.
	kubectl(ctx, "delete", "--namespace="+namespace, "jobs", "--all")
}

// nodesAreThePods fails unless the sample has a number of nodes and status.nodes lists exactly its pods.
func nodesAreThePods(ctx context.Context, namespace string, nodes int) error {
	mc := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "memcached-sample"}}
	if err := settled(ctx, memcacheds, mc); err != nil {
		return err
	}
	running, err := podsOf(ctx, mc)
	if err != nil {
		return err
	}
	pods := sets.New[string]()
	for _, pod := range running {
		pods.Insert(pod.Name)
	}
	if pods.Len() != nodes || !slices.Equal(sets.List(pods), mc.Status.Nodes) {
		return fmt.Errorf("status.nodes is %v, the pods are %v", mc.Status.Nodes, sets.List(pods))
	}
	return nil
}
