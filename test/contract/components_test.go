package contract

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Those for all resources: the number of series must not depend on the number of resources.
var _ = Describe("The metrics of the manager", func() {
	It("count resources by condition, measure how long a status takes, and follow Prometheus' conventions",
		func(ctx context.Context) {
			number := func(metric string) (value float64) {
				_, body := scrape(scraper)
				for line := range strings.Lines(body) {
					if rest, ok := strings.CutPrefix(line, metric+" "); ok {
						_, err := fmt.Sscan(rest, &value)
						Expect(err).NotTo(HaveOccurred())
						return value
					}
				}
				Fail("no metric " + metric)
				return 0
			}
			series := func() int {
				_, body := scrape(scraper)
				return strings.Count(body, "\nmemcached_operator_")
			}
			for _, k := range kinds {
				if k.Variant != "" {
					continue
				}
				delays := fmt.Sprintf(`memcached_operator_status_delay_seconds_count{kind=%q}`, k.Name)
				available := fmt.Sprintf(`memcached_operator_resources{condition="Available",kind=%q,status="True"}`, k.Name)
				ns := newNamespace(ctx) // kinds have children of the same names
				first := k.create(ctx, k.Make(ns, "one", 1))
				k.settle(ctx, first)
				before, delay := series(), number(delays)
				for _, name := range []string{"two", "three", "four"} {
					k.settle(ctx, k.create(ctx, k.Make(ns, name, 1)))
				}
				Expect(number(delays)).To(BeNumerically(">=", delay+3), "each change is measured")
				Expect(number(available)).To(BeNumerically(">=", 4), k.Name)
				Expect(series()).To(Equal(before), "the number of series of %s", k.Name)
			}
			Expect(series()).To(BeNumerically("<", 100))

			_, body := scrape(scraper)
			problems, err := promlint.New(strings.NewReader(body)).Lint()
			Expect(err).NotTo(HaveOccurred())
			for _, problem := range problems { // those of controller-runtime keep their names
				Expect(problem.Metric).NotTo(HavePrefix("memcached_operator_"), problem.Text)
			}
		})
})

// config/default and the bundle leave these out, because not every cluster accepts them.
var _ = Describe("The components", func() {
	It("are accepted by the API server, and use metrics that exist", func(context.Context) {
		DeferCleanup(kubectl, "delete", "--ignore-not-found", "-f", "testdata/monitoring.yaml")
		kubectl("apply", "-f", "testdata/monitoring.yaml")
		kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", "testdata/monitoring.yaml")
		DeferCleanup(kubectl, "delete", "--ignore-not-found", "-k", "testdata/components")
		Expect(kubectl("apply", "--server-side", "--validate=strict", "-k", "testdata/components")).To(And(
			ContainSubstring("networkpolicy.networking.k8s.io/"), ContainSubstring("servicemonitor.monitoring.coreos.com/"),
			ContainSubstring("prometheusrule.monitoring.coreos.com/"), ContainSubstring("podmonitor.monitoring.coreos.com/"),
			ContainSubstring("configmap/memcached-operator-dashboard")))
		Expect(kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server",
			"-k", "testdata/openshift-components")).To(And(ContainSubstring("secret/memcached-operator-metrics-token"),
			ContainSubstring("servicemonitor.monitoring.coreos.com/")))

		_, served := scrape(scraper)
		expressions := kubectl("get", "--namespace=memcached-operator-system", "prometheusrules",
			"memcached-operator-controller-manager", "-o", "jsonpath={range .spec.groups[*].rules[*]}{.expr}{'\\n'}{end}")
		Expect(strings.Count(expressions, "\n")).To(BeNumerically(">=", 4), "five expressions, one in each line")
		for expression := range strings.Lines(expressions) {
			metric := regexp.MustCompile(`(\w+)\{job=`).FindStringSubmatch(expression)[1]
			if metric == "up" { // Prometheus's own
				continue
			}
			Expect(served).To(ContainSubstring("\n" + metric + "{"))
			// the namespace is Prometheus's too
			by := regexp.MustCompile(`by \(namespace, (.*?)\)`).FindStringSubmatch(expression)[1]
			for label := range strings.SplitSeq(by, ", ") {
				Expect(served).To(MatchRegexp(`\n` + metric + `\{(.*,)?` + label + `="`))
			}
		}
	})
})
