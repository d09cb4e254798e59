package contract

import (
	"context"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// config/default and the bundle leave these out, because not every cluster accepts them.
var _ = Describe("The components", func() {
	It("are accepted by the API server, and use metrics that exist", func(context.Context) {
		DeferCleanup(kubectl, "delete", "--ignore-not-found", "-f", "testdata/monitoring.yaml")
		kubectl("apply", "-f", "testdata/monitoring.yaml")
		kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", "testdata/monitoring.yaml")
		DeferCleanup(kubectl, "delete", "--ignore-not-found", "-k", "testdata/components")
		Expect(kubectl("apply", "--server-side", "--validate=strict", "-k", "testdata/components")).To(And(
			ContainSubstring("networkpolicy.networking.k8s.io/"), ContainSubstring("servicemonitor.monitoring.coreos.com/"),
			ContainSubstring("prometheusrule.monitoring.coreos.com/")))

		_, served := scrape(scraper)
		expressions := kubectl("get", "prometheusrules", "-A", "-o",
			"jsonpath={range .items[*].spec.groups[*].rules[*]}{.expr}{'\\n'}{end}")
		Expect(strings.Count(expressions, "\n")).To(BeNumerically(">=", 3), "four expressions, one in each line")
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
