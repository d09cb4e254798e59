package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenFile has the token of a pod's service account.
const tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// ask runs the program of probe/ in a pod, as a service account if one is named, and returns its output. It fails if
// the program does.
func ask(ctx context.Context, namespace, serviceAccount string, args ...string) string {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			ServiceAccountName:           serviceAccount,
			AutomountServiceAccountToken: ptr.To(serviceAccount != ""),
			Containers: []corev1.Container{{Name: "probe", Image: image("-probe"), Args: args,
				SecurityContext: restricted()}},
		},
	}
	create(ctx, pod)
	defer func() { _ = kube.Delete(ctx, pod, client.GracePeriodSeconds(0)) }()
	Eventually(func(ctx context.Context) (corev1.PodPhase, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase, err
	}).WithContext(ctx).Should(BeElementOf(corev1.PodSucceeded, corev1.PodFailed))
	answer := logOf(ctx, pod)
	AddReportEntry(fmt.Sprintf("probe %s: %s", strings.Join(args, " "), answer), ReportEntryVisibilityFailureOrVerbose)
	Expect(pod.Status.Phase).To(Equal(corev1.PodSucceeded), answer)
	return answer
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
