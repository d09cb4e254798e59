package contract

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// What is rejected before it is stored. What only the operator can see is with the kinds.
var _ = Describe("The API server", func() {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	create := func(ctx context.Context, apiVersion, kind, body string, options ...client.CreateOption) error {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(body), &object.Object)).To(Succeed())
		if object.Object == nil {
			object.Object = map[string]any{}
		}
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		object.SetNamespace(ns)
		object.SetName("one")
		return k8s.Create(ctx, object, append(options, client.FieldValidation("Strict"))...)
	}

	// rejects returns a spec: the API server refuses a body, and its words have all that is given.
	rejects := func(k kind) func(context.Context, string, ...string) {
		return func(ctx context.Context, body string, words ...string) {
			err := create(ctx, k.apiVersion, k.name, body)
			Expect(err).To(HaveOccurred())
			for _, word := range words {
				Expect(err).To(MatchError(ContainSubstring(word)))
			}
		}
	}

	DescribeTable("rejects a Foo", rejects(kinds[0]),
		Entry("without spec", `{}`, "spec: Required value"),
		Entry("with an empty spec", `{spec: {}}`, "spec.deploymentName: Required value"),
		Entry("with a null deploymentName", `{spec: {deploymentName: null}}`, "spec.deploymentName"),
		Entry("with an empty deploymentName", `{spec: {deploymentName: ""}}`, "spec.deploymentName", "at least 1 chars"),
		Entry("with an upper-case deploymentName", `{spec: {deploymentName: Web}}`, "spec.deploymentName", "must be a lower-case DNS subdomain"),
		Entry("with a deploymentName that ends in a dash", `{spec: {deploymentName: web-}}`, "spec.deploymentName", "starting and ending with a letter or digit"),
		Entry("with a deploymentName with two dots", `{spec: {deploymentName: a..b}}`, "spec.deploymentName"),
		Entry("with a deploymentName with a space", `{spec: {deploymentName: "a b"}}`, "spec.deploymentName"),
		Entry("with a deploymentName on two lines", `{spec: {deploymentName: "a\nb"}}`, "spec.deploymentName"),
		Entry("with a deploymentName of 254 characters", `{spec: {deploymentName: `+strings.Repeat("a", 254)+`}}`, "spec.deploymentName", "253"),
		Entry("with a deploymentName that is a number", `{spec: {deploymentName: 1}}`, "spec.deploymentName", "must be of type string"),
		Entry("with negative replicas", `{spec: {deploymentName: web, replicas: -1}}`, "spec.replicas", "greater than or equal to 0"),
		Entry("with huge replicas", `{spec: {deploymentName: web, replicas: 2147483648}}`, "spec.replicas", "2147483647"),
		Entry("with half a replica", `{spec: {deploymentName: web, replicas: 1.5}}`, "spec.replicas", "must be of type integer"),
		Entry("with replicas in words", `{spec: {deploymentName: web, replicas: two}}`, "spec.replicas", "must be of type integer"),
		Entry("with an unknown field", `{spec: {deploymentName: web, replica: 1}}`, `unknown field "spec.replica"`),
	)

	DescribeTable("rejects a Memcached", rejects(kinds[1]),
		Entry("without spec", `{}`, "spec: Required value"),
		Entry("with an empty spec", `{spec: {}}`, "spec.size: Required value"),
		Entry("with a null size", `{spec: {size: null}}`, "spec.size"),
		Entry("with a negative size", `{spec: {size: -1}}`, "spec.size", "greater than or equal to 0"),
		Entry("with a huge size", `{spec: {size: 5001}}`, "spec.size", "less than or equal to 5000"),
		Entry("with a size beyond all numbers", `{spec: {size: 99999999999}}`, "spec.size"),
		Entry("with half a node", `{spec: {size: 1.5}}`, "spec.size", "must be of type integer"),
		Entry("with a size in words", `{spec: {size: two}}`, "spec.size", "must be of type integer"),
		Entry("with an unknown field", `{spec: {size: 1, replicas: 1}}`, `unknown field "spec.replicas"`),
	)

	It("takes the longest and the largest that is allowed", func(ctx context.Context) {
		Expect(create(ctx, kinds[0].apiVersion, "Foo", `{spec: {deploymentName: `+strings.Repeat("a", 253)+`, replicas: 2147483647}}`, client.DryRunAll)).To(Succeed())
		Expect(create(ctx, kinds[1].apiVersion, "Memcached", `{spec: {size: 5000}}`, client.DryRunAll)).To(Succeed())
	})
})
