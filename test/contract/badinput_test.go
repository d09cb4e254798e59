package contract

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
	"github.com/example/memcached-operator/test/testenv"
)

// What the API server rejects and accepts. All requests are dry runs, except those of kubectl apply.
var _ = Describe("The API server", ownManager, func() {
	const ns = "default"

	create := func(ctx context.Context, apiVersion, kind, body string) error {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(body), &object.Object)).To(Succeed())
		if object.Object == nil {
			object.Object = map[string]any{}
		}
		object.SetAPIVersion(apiVersion)
		object.SetKind(kind)
		object.SetNamespace(ns)
		if object.GetName() == "" {
			object.SetName("one")
		}
		return k8s.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
	}

	// createWith creates an object with a value in the field of a path.
	createWith := func(ctx context.Context, k kind, path string, value any) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k.Make(ns, "one", 1))
		Expect(err).NotTo(HaveOccurred())
		delete(content, "status")
		k.Set(content, path, value)
		body, err := yaml.Marshal(content)
		Expect(err).NotTo(HaveOccurred())
		return create(ctx, k.APIVersion(), k.Name, string(body))
	}

	// rejects returns a spec: the API server rejects a body with an error that contains all words.
	rejects := func(k kind) func(context.Context, string, ...string) {
		return func(ctx context.Context, body string, words ...string) {
			err := create(ctx, k.APIVersion(), k.Name, body)
			Expect(err).To(HaveOccurred())
			for _, word := range words {
				Expect(err).To(MatchError(ContainSubstring(word)))
			}
		}
	}

	for _, k := range kinds {
		if k.Variant != "" {
			continue // it has the same schema
		}
		crd, err := k.Definition()
		if err != nil {
			panic(err)
		}
		required := []any{`{spec: {}}`}
		for _, path := range k.Required(crd) {
			required = append(required, path+": Required value")
		}
		DescribeTable("rejects a "+k.Name, rejects(k),
			Entry("without spec", `{}`, "spec: Required value"),
			Entry("with an empty spec", required...),
			Entry("with an unknown field", `{spec: {nothing: 1}}`, `unknown field "spec.nothing"`))

		for _, field := range k.Fields(crd) {
			It("validates the values of "+field.Path+" of a "+k.Name, func(ctx context.Context) {
				for _, value := range field.Values {
					err := createWith(ctx, k, field.Path, value.Value)
					if value.IsAccepted() {
						Expect(err).NotTo(HaveOccurred(), value.Name)
						continue
					}
					Expect(err).To(MatchError(ContainSubstring(field.Path)), value.Name)
					for _, word := range value.Words {
						Expect(err).To(MatchError(ContainSubstring(word)), value.Name)
					}
				}
			})
		}
		for _, path := range k.Required(crd) {
			It("rejects a "+k.Name+" whose "+path+" is null", func(ctx context.Context) {
				Expect(createWith(ctx, k, path, nil)).To(MatchError(ContainSubstring(path)))
			})
		}
	}

	memcached := kinds[1]
	DescribeTable("rejects a Memcached", rejects(memcached),
		Entry("with too few connections for its threads", `{spec: {size: 1, config: {threads: 64, maxConnections: 575}}}`,
			"spec.config.maxConnections", "must be at least 64 + 8 * spec.config.threads", "lower threads"),
		Entry("with items of more than half of its memory", `{spec: {size: 1, config: {memory: 8Mi, maxItemSize: 5Mi}}}`,
			"spec.config.maxItemSize", "must be at most half of spec.config.memory"),
		Entry("with items of more than half of the default memory", `{spec: {size: 1, config: {maxItemSize: 33Mi}}}`,
			"spec.config.maxItemSize", "which is 64Mi by default: lower maxItemSize or set memory"),
		Entry("with a request above the limit", `{spec: {size: 1, resources: {limits: {cpu: 1}, requests: {cpu: 1100m}}}}`,
			"spec.resources.requests", "must not be more than the limits"),
		Entry("with TLS without a Secret", `{spec: {size: 1, tls: {}}}`, "spec.tls.secretName: Required value"),
		Entry("with an empty name of a Secret", `{spec: {size: 1, tls: {secretName: ""}}}`, "spec.tls.secretName"),
		Entry("that requires certificates of clients without their CA",
			`{spec: {size: 1, tls: {secretName: web, clientCertificates: {mode: Required}}}}`,
			"spec.tls.clientCertificates", "must have either caSecretName or caConfigMapName", "in the key ca.crt"),
		Entry("with two CAs of clients", `{spec: {size: 1, tls: {secretName: web,
			clientCertificates: {mode: Optional, caSecretName: a, caConfigMapName: b}}}}`,
			"spec.tls.clientCertificates", "must have either caSecretName or caConfigMapName"),
	)

	It("accepts a Memcached at the limits, and keeps its workload type", func(ctx context.Context) {
		Expect(create(ctx, memcached.APIVersion(), memcached.Name, `{spec: {size: 5000,
			config: {threads: 64, maxConnections: 576, memory: 2Gi, maxItemSize: 1Gi},
			resources: {limits: {memory: 2Gi, cpu: 1}, requests: {memory: 1Gi, cpu: 1}}}}`)).To(Succeed())
		ns := newNamespace(ctx)
		object := memcached.Make(ns, "one", 0).(*cachev1alpha1.Memcached)
		object.Spec.WorkloadType = cachev1alpha1.StatefulSetWorkload
		Expect(k8s.Create(ctx, object)).To(Succeed())
		for _, workloadType := range []cachev1alpha1.WorkloadType{cachev1alpha1.DeploymentWorkload, ""} {
			changed := object.DeepCopy()
			changed.Spec.WorkloadType = workloadType
			Expect(k8s.Update(ctx, changed)).To(MatchError(And(ContainSubstring("spec.workloadType"),
				ContainSubstring("cannot be changed: create another Memcached and move the clients"))))
		}
	})

	// These add fields to spec, to spec.jobTemplate.spec and to the pod's spec of a minimal CronJob.
	cronJob := kinds[2]
	job := func(jobSpec, podSpec string) string {
		return `{spec: {` + jobSpec + `template: {spec: {` + podSpec + `containers: [{name: it, image: it}]}}}}`
	}
	with := func(spec string) string {
		return `{spec: {schedule: "@daily", ` + spec + `jobTemplate: ` + job("", "restartPolicy: Never, ") + `}}`
	}
	running := func(template string) string { return `{spec: {schedule: "@daily", jobTemplate: ` + template + `}}` }
	doing := func(jobSpec string) string { return running(job(jobSpec, "restartPolicy: Never, ")) }

	DescribeTable("rejects a CronJob", rejects(cronJob),
		Entry("with an unknown field", with("paused: true, "), `unknown field "spec.paused"`),
		Entry("with a name of 53 characters", `{metadata: {name: `+strings.Repeat("a", 53)+`}, `+with("")[1:],
			"metadata: Invalid value", "the name must have at most 52 characters"),
	)

	DescribeTable("rejects a CronJob whose jobTemplate", rejects(cronJob),
		Entry("is empty", running(`{}`), "spec.jobTemplate", "needs spec.template.spec with containers and a restartPolicy"),
		Entry("has an empty spec", running(`{spec: {}}`), "spec.jobTemplate.spec.template: Required value"),
		Entry("has an empty template", running(`{spec: {template: {}}}`), "spec.jobTemplate",
			"needs spec.template.spec with containers and a restartPolicy"),
		Entry("has no containers", running(`{spec: {template: {spec: {restartPolicy: Never}}}}`),
			"spec.jobTemplate.spec.template.spec.containers: Required value"),
		Entry("has an empty list of containers",
			running(`{spec: {template: {spec: {restartPolicy: Never, containers: []}}}}`),
			"spec.jobTemplate.spec.template.spec.containers", "needs at least one container"),
		Entry("has a container without an image",
			running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: it}]}}}}`),
			"spec.jobTemplate.spec.template.spec.containers", "every container needs an image"),
		Entry("has a container without a name",
			running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{image: it}]}}}}`),
			"spec.jobTemplate.spec.template.spec.containers[0].name: Required value"),
		Entry("has an init container without an image",
			running(job("", "restartPolicy: Never, initContainers: [{name: first}], ")),
			"spec.jobTemplate.spec.template.spec.initContainers", "every container needs an image"),
		Entry("has no restartPolicy", running(job("", "")), "spec.jobTemplate.spec.template.spec.restartPolicy",
			"must be OnFailure or Never"),
		Entry("restarts always", running(job("", "restartPolicy: Always, ")),
			"spec.jobTemplate.spec.template.spec.restartPolicy", "must be OnFailure or Never"),
		Entry("restarts sometimes", running(job("", "restartPolicy: Sometimes, ")),
			"spec.jobTemplate.spec.template.spec.restartPolicy", "must be OnFailure or Never"),
		Entry("restarts what a podFailurePolicy is for",
			running(job("podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}, ",
				"restartPolicy: OnFailure, ")),
			"spec.jobTemplate.spec.template.spec.restartPolicy", "must be Never where there is a podFailurePolicy"),
		Entry("has a name", running(`{metadata: {name: mine}, `+job("", "restartPolicy: Never, ")[1:]),
			"spec.jobTemplate.metadata.name", "must be left out: Jobs are named after the CronJob and their time"),
		Entry("has a namespace", running(`{metadata: {namespace: mine}, `+job("", "restartPolicy: Never, ")[1:]),
			"spec.jobTemplate.metadata.namespace", "must be left out: Jobs are in the namespace of the CronJob"),
		Entry("has a finalizer",
			running(`{metadata: {finalizers: [example.com/mine]}, `+job("", "restartPolicy: Never, ")[1:]),
			"spec.jobTemplate.metadata.finalizers", "must be left out"),
		Entry("has a name to begin with", running(`{metadata: {generateName: mine-}, `+job("", "restartPolicy: Never, ")[1:]),
			`unknown field "spec.jobTemplate.metadata.generateName"`),
		Entry("has a selector", doing("selector: {matchLabels: {a: b}}, "), "spec.jobTemplate.spec.selector",
			"must be left out"),
		Entry("has a selector by hand", doing("manualSelector: true, "), "spec.jobTemplate.spec.manualSelector",
			"must be left out"),
		Entry("has another completionMode", doing("completionMode: Random, "), "spec.jobTemplate.spec.completionMode",
			"must be Indexed or NonIndexed"),
		Entry("is indexed without completions", doing("completionMode: Indexed, "), "spec.jobTemplate.spec.completions",
			"must be set where completionMode is Indexed"),
		Entry("has a limit for each index and none", doing("backoffLimitPerIndex: 1, "),
			"spec.jobTemplate.spec.backoffLimitPerIndex", "needs the completionMode Indexed"),
		Entry("has a limit of indexes and none for each",
			doing("completionMode: Indexed, completions: 1, maxFailedIndexes: 1, "), "spec.jobTemplate.spec.maxFailedIndexes",
			"needs a backoffLimitPerIndex"),
		Entry("has a successPolicy and no indexes", doing("successPolicy: {rules: [{succeededCount: 1}]}, "),
			"spec.jobTemplate.spec.successPolicy", "needs the completionMode Indexed"),
		Entry("has another podReplacementPolicy", doing("podReplacementPolicy: Never, "),
			"spec.jobTemplate.spec.podReplacementPolicy", "must be Failed or TerminatingOrFailed"),
		Entry("replaces what a podFailurePolicy waits for",
			doing("podReplacementPolicy: TerminatingOrFailed, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: "+
				"{operator: In, values: [3]}}]}, "),
			"spec.jobTemplate.spec.podReplacementPolicy", "Failed where there is a podFailurePolicy"),
		// Kubernetes accepts these two in a Job, but not in a custom resource.
		Entry("has a variable twice",
			running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: it, image: it, env: [{name: A, value: b}, {name: A, value: c}]}]}}}}`),
			"spec.jobTemplate.spec.template.spec.containers[0].env[1]: Duplicate value"),
		Entry("has a time of creation",
			running(`{metadata: {creationTimestamp: null}, `+job("", "restartPolicy: Never, ")[1:]),
			`unknown field "spec.jobTemplate.metadata.creationTimestamp"`),
		Entry("has an unknown field", doing("retries: 3, "), `unknown field "spec.jobTemplate.spec.retries"`),
		Entry("has a container with an unknown field",
			running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: it, image: it, cmd: [it]}]}}}}`),
			`unknown field "spec.jobTemplate.spec.template.spec.containers[0].cmd"`),
	)

	DescribeTable("rejects a CronJob whose jobTemplate has a negative", func(ctx context.Context, before, field string) {
		body := doing(before + field + ": -1, ")
		rejects(cronJob)(ctx, body, "spec.jobTemplate.spec."+field, "must be 0 or more")
	},
		Entry(nil, "", "parallelism"), Entry(nil, "", "completions"), Entry(nil, "", "backoffLimit"),
		Entry(nil, "", "activeDeadlineSeconds"), Entry(nil, "", "ttlSecondsAfterFinished"),
		Entry(nil, "completionMode: Indexed, completions: 1, ", "backoffLimitPerIndex"),
		Entry(nil, "completionMode: Indexed, completions: 1, backoffLimitPerIndex: 1, ", "maxFailedIndexes"))

	DescribeTable("accepts a CronJob", func(ctx context.Context, bodies ...string) {
		for _, body := range bodies {
			Expect(create(ctx, cronJob.APIVersion(), cronJob.Name, body)).To(Succeed(), body)
		}
	},
		Entry("with the longest name", `{metadata: {name: `+strings.Repeat("a", 52)+`}, `+with("")[1:],
			`{metadata: {name: a.b-c.9}, `+with("")[1:]),
		Entry("with the least",
			with(`startingDeadlineSeconds: 0, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0, suspend: true, `)),
		Entry("with the most",
			with(`startingDeadlineSeconds: 3155760000, successfulJobsHistoryLimit: 2147483647, failedJobsHistoryLimit: 2147483647, `)),
		Entry("with Jobs of no pods",
			doing("parallelism: 0, completions: 0, backoffLimit: 0, activeDeadlineSeconds: 0, ttlSecondsAfterFinished: 0, "+
				"manualSelector: false, suspend: true, ")),
		Entry("with indexed Jobs",
			doing("completionMode: Indexed, completions: 3, parallelism: 3, backoffLimitPerIndex: 0, maxFailedIndexes: 1, "+
				"successPolicy: {rules: [{succeededCount: 1}]}, ")),
		Entry("with Jobs that know their failures",
			doing("completionMode: NonIndexed, podReplacementPolicy: Failed, podFailurePolicy: {rules: [{action: FailJob, "+
				"onExitCodes: {operator: In, values: [3]}}]}, "),
			doing("podReplacementPolicy: TerminatingOrFailed, ")),
		Entry("with Jobs that restart on failure", running(job("", "restartPolicy: OnFailure, "))),
		Entry("with fields that are empty, as templates leave them",
			with(`timeZone: null, startingDeadlineSeconds: null, suspend: null, `),
			running(job("", "restartPolicy: Never, affinity: null, nodeSelector: null, volumes: null, "))),
	)

	It("stores a CronJob that kubectl applies, unchanged", func(ctx context.Context) {
		ns := newNamespace(ctx)
		content, err := os.ReadFile("testdata/cronjob.yaml")
		Expect(err).NotTo(HaveOccurred())
		var written tutorialv1.CronJob
		Expect(yaml.UnmarshalStrict(content, &written)).To(Succeed())
		for range 2 {
			out := kubectl("--namespace", ns, "apply", "-f", "testdata/cronjob.yaml")
			Expect(out).NotTo(ContainSubstring("Warning"))
		}
		stored := &unstructured.Unstructured{}
		stored.SetAPIVersion(cronJob.APIVersion())
		stored.SetKind(cronJob.Name)
		stored.SetNamespace(ns)
		stored.SetName(written.Name)
		read := &tutorialv1.CronJob{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(get(ctx, stored).Object, read)).To(Succeed())
		Expect(read.Spec).To(BeComparableTo(written.Spec))
		Expect(read.Annotations).To(HaveKey(corev1.LastAppliedConfigAnnotation))
	})

	It("sets the defaults of a CronJob", func(ctx context.Context) {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(with("")), &object.Object)).To(Succeed())
		object.SetAPIVersion(cronJob.APIVersion())
		object.SetKind(cronJob.Name)
		object.SetNamespace(ns)
		object.SetName("one")
		Expect(k8s.Create(ctx, object, client.DryRunAll)).To(Succeed())
		spec := object.Object["spec"].(map[string]any)
		delete(spec, "jobTemplate")
		Expect(spec).To(Equal(map[string]any{"schedule": "@daily", "concurrencyPolicy": "Allow", "suspend": false,
			"successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1)}))
	})

	// kubectl apply stores the object in an annotation, whose size is limited.
	It("accepts the CustomResourceDefinitions with kubectl apply", func(ctx context.Context) {
		out := kubectl("apply", "--dry-run=server", "-k", testenv.Root()+"/config/crd")
		Expect(strings.Count(out, "configured (server dry run)")).To(Equal(3), out)
	})
})
