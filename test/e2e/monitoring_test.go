package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/monitoring"
)

// prometheusConfig discovers and labels targets as the Prometheus operator does from config/prometheus.
const prometheusConfig = `
global: {scrape_interval: 2s, evaluation_interval: 2s}
rule_files: [/etc/prometheus/*rule.yaml]
scrape_configs:
- job_name: nodes
  kubernetes_sd_configs: [{role: pod}]
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_labelpresent_memcached_cr], regex: "true", action: keep}
  - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics, action: keep}
  - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
  - {source_labels: [__meta_kubernetes_pod_label_memcached_cr], target_label: memcached_cr}
- job_name: memcached-operator-controller-manager-metrics-service
  scheme: https
  tls_config: {insecure_skip_verify: true}
  authorization: {credentials_file: ` + tokenFile + `}
  kubernetes_sd_configs: [{role: pod, namespaces: {names: [` + operatorNamespace + `]}}]
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: https, action: keep}
  - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
`

var _ = Describe("Monitoring", Ordered, func() {
	var namespace string
	var cache, plain *cachev1alpha1.Memcached

	BeforeAll(func(ctx SpecContext) {
		deploy(ctx)
		namespace = newNamespaces(ctx, restrictedLevel, "monitoring-")[0]
		a := newAuthority(ctx, namespace)
		cache = sample(&tlsNamespace{name: namespace}, "tls")
		put(ctx, namespace, cache.Spec.TLS.SecretName, a.content(issue(&a.ca, time.Hour, namesIn(namespace, cache.Name)...)))
		create(ctx, cache)
		plain = sample(&tlsNamespace{name: namespace}, "metrics")
		create(ctx, plain)
		runPrometheus(ctx, namespace)
		awaitSettled(ctx, memcacheds, cache, plain)
		create(ctx, probe(namespace, "load", addressOf(ctx, plain, plain.Status.Nodes[0])))
	}, NodeTimeout(2*stepTimeout))

	It("has data for every query of the dashboard", func(ctx SpecContext) {
		panels, err := monitoring.Panels(filepath.Join(root, "config/prometheus"))
		Expect(err).NotTo(HaveOccurred())
		const managers = `count(up{job="memcached-operator-controller-manager-metrics-service"} == 1)`
		Eventually(queryPrometheus).WithContext(ctx).WithArguments(namespace, managers).Should(ContainElement("2"))
		change(ctx, plain, func() { plain.Spec.Size++ }) // its status is timed between two scrapes
		count := 0
		variables := strings.NewReplacer("$namespace", namespace, "$memcached", ".*")
		for _, panel := range panels {
			for _, target := range panel.Targets {
				query := variables.Replace(target.Expr)
				Eventually(queryPrometheus).WithContext(ctx).WithArguments(namespace, query).WithPolling(time.Second).
					ShouldNot(BeEmpty(), "%s: %s", panel.Title, query)
				count++
			}
		}
		measure("%d queries of the dashboard have data", count)
	}, SpecTimeout(stepTimeout))

	It("has alerts that can fire, and that do not while nothing is wrong", func(ctx SpecContext) {
		Eventually(queryPrometheus).WithContext(ctx).
			WithArguments(namespace, `count(up{memcached_cr!=""} == 1)`).Should(ContainElement("5"))
		alerts := fmt.Sprintf(`ALERTS{alertname=~"Memcached.*",namespace=~"|%s|%s"}`, namespace, operatorNamespace)
		Expect(queryPrometheus(ctx, namespace, alerts)).To(BeEmpty())
		Expect(kube.Delete(ctx, &corev1.Secret{ObjectMeta: podNamed(namespace, cache.Spec.TLS.SecretName).ObjectMeta})).
			To(Succeed())
		Eventually(queryPrometheus).WithContext(ctx).WithPolling(time.Second).WithArguments(namespace,
			`ALERTS{alertname="MemcachedCertificateNotServed",memcached_cr="memcached-tls"}`).ShouldNot(BeEmpty())
	}, SpecTimeout(stepTimeout))
})

const prometheusName = "prometheus"

// runPrometheus runs Prometheus with the rules of config/prometheus, and with the permissions that docs/monitoring.md
// names.
func runPrometheus(ctx context.Context, namespace string) {
	GinkgoHelper()
	files := map[string]string{"prometheus.yaml": prometheusConfig}
	rules, err := monitoring.RuleFiles(filepath.Join(root, "config/prometheus"))
	Expect(err).NotTo(HaveOccurred())
	for name, content := range rules {
		files[name] = string(content)
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: prometheusName}
	clusterMeta := metav1.ObjectMeta{Name: namespace + "-prometheus"}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: prometheusName}}
	role := &rbacv1.ClusterRole{ObjectMeta: clusterMeta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}
	cleanUp(func(ctx context.Context) { deleteAll(ctx, binding, role) })
	pod := probe(namespace, "--config.file=/etc/prometheus/prometheus.yaml", "--storage.tsdb.path=/data")
	pod.ObjectMeta = meta
	pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = prometheusName, ptr.To(true)
	pod.Spec.Containers[0].Image = image("-prometheus")
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: prometheusName}}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](65532)}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/prometheus"},
		{Name: "data", MountPath: "/data"}}
	create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, role, binding,
		&corev1.ConfigMap{ObjectMeta: meta, Data: files}, pod)
	Eventually(func(ctx context.Context) (bool, error) {
		err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return !readySince(pod).IsZero(), err
	}).WithContext(ctx).Should(BeTrue(), "Prometheus is not ready")
}

// queryPrometheus returns the values of the series that a query has.
func queryPrometheus(ctx context.Context, namespace, query string) ([]string, error) {
	content, err := clients.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
		Name(prometheusName+":9090").SubResource("proxy").Suffix("api/v1/query").
		Param("query", query).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url.QueryEscape(query), err)
	}
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return nil, err
	}
	var values []string
	for _, series := range answer.Data.Result {
		if value := fmt.Sprint(series.Value[1]); value != "NaN" {
			values = append(values, value)
		}
	}
	return values, nil
}
