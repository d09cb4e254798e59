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
	"github.com/example/memcached-operator/test/testenv"
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
		if object.GetName() == "" {
			object.SetName("one")
		}
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

	// A CronJob whose Jobs are as small as they can be, with more of spec, of spec.jobTemplate.spec and of the pod's.
	cronJob := kind{name: "CronJob", apiVersion: tutorialv1.GroupVersion.String()}
	job := func(jobSpec, podSpec string) string {
		return `{spec: {` + jobSpec + `template: {spec: {` + podSpec + `containers: [{name: it, image: it}]}}}}`
	}
	with := func(spec string) string {
		return `{spec: {schedule: "@daily", ` + spec + `jobTemplate: ` + job("", "restartPolicy: Never, ") + `}}`
	}
	at := func(schedule string) string {
		return `{spec: {schedule: "` + schedule + `", jobTemplate: ` + job("", "restartPolicy: Never, ") + `}}`
	}
	running := func(template string) string { return `{spec: {schedule: "@daily", jobTemplate: ` + template + `}}` }
	doing := func(jobSpec string) string { return running(job(jobSpec, "restartPolicy: Never, ")) }

	const (
		shape = `must be five fields on one line with spaces between them, "minute hour day-of-month month day-of-week", such as "30 2 * * mon-fri"`
		zone  = "must be the name of a zone in the IANA time zone database, such as Europe/Berlin"
	)
	DescribeTable("rejects a CronJob", rejects(cronJob),
		Entry("without spec", `{}`, "spec: Required value"),
		Entry("with an empty spec", `{spec: {}}`, "spec.schedule: Required value", "spec.jobTemplate: Required value"),
		Entry("with an unknown field", with("paused: true, "), `unknown field "spec.paused"`),
		Entry("with a name of 53 characters", `{metadata: {name: `+strings.Repeat("a", 53)+`}, `+with("")[1:], "metadata: Invalid value", "the name must have at most 52 characters"),

		Entry("with a null schedule", `{spec: {schedule: null, jobTemplate: {}}}`, "spec.schedule"),
		Entry("with a schedule that is a number", `{spec: {schedule: 5, jobTemplate: {}}}`, "spec.schedule", "must be of type string"),
		Entry("with an empty schedule", at(""), "spec.schedule", shape),
		Entry("with a schedule of a space", at(" "), "spec.schedule", shape),
		Entry("with a schedule of 257 characters", at("*/5 * * * *"+strings.Repeat(" ", 246)), "spec.schedule", "256"),
		Entry("with a schedule of four fields", at("0 * * *"), "spec.schedule", shape),
		Entry("with a schedule that has seconds", at("0 0 * * * *"), "spec.schedule", shape),
		Entry("with a schedule on two lines", at(`0 *\n* * *`), "spec.schedule", shape),
		Entry("with a schedule and a line's end", at(`0 * * * *\n`), "spec.schedule", shape),
		Entry("with a schedule of words", at("every five minutes please now"), "spec.schedule", "first field, the minute, must be * or 0 to 59"),
		Entry("with a time zone in the schedule", at("TZ=Europe/Berlin 0 6 * * *"), "spec.schedule", "put it into spec.timeZone"),
		Entry("with a time zone in the schedule, as cron has it", at("CRON_TZ=Europe/Berlin 0 6 * * *"), "spec.schedule", "put it into spec.timeZone"),
		Entry("with a time zone before a name", at("TZ=UTC @daily"), "spec.schedule", "put it into spec.timeZone"),
		Entry("with a name that is no schedule's", at("@fortnightly"), "spec.schedule", "@yearly, @annually, @monthly"),
		Entry("with a name in upper case", at("@Daily"), "spec.schedule", "@daily"),
		Entry("with a name and a space before it", at(" @daily"), "spec.schedule", "@daily"),
		Entry("with a schedule at boot", at("@reboot"), "spec.schedule", "@daily"),
		Entry("with every nothing", at("@every"), "spec.schedule", `such as "@every 1h30m"`),
		Entry("with every no time", at("@every 0s"), "spec.schedule", "must leave at least one second between Jobs"),
		Entry("with every no time at all", at("@every 0h00m0s"), "spec.schedule", "must leave at least one second between Jobs"),
		Entry("with every half a second", at("@every 500ms"), "spec.schedule", "in whole numbers"),
		Entry("with every one and a half hours", at("@every 1.5h"), "spec.schedule", "in whole numbers"),
		Entry("with every day", at("@every 1d"), "spec.schedule", "hours, minutes and seconds"),
		Entry("with every time before", at("@every -1h"), "spec.schedule", "in whole numbers"),
		Entry("with every 30 without a unit", at("@every 30"), "spec.schedule", "hours, minutes and seconds"),
		Entry("with every minute before the hour", at("@every 30m1h"), "spec.schedule", "hours, minutes and seconds"),
		Entry("with every million hours", at("@every 1000000h"), "spec.schedule", "@every"),
		Entry("with minute 60", at("60 * * * *"), "spec.schedule", "first field, the minute, must be * or 0 to 59"),
		Entry("with minute -1", at("-1 * * * *"), "spec.schedule", "the minute"),
		Entry("with a minute of three digits", at("005 * * * *"), "spec.schedule", "the minute"),
		Entry("with a minute too many", at("0,60 * * * *"), "spec.schedule", "the minute"),
		Entry("with a list that ends in a comma", at("0,30, * * * *"), "spec.schedule", "the minute"),
		Entry("with a range without end", at("5- * * * *"), "spec.schedule", "the minute"),
		Entry("with a range of three", at("1-2-3 * * * *"), "spec.schedule", "the minute"),
		Entry("with a step of nothing", at("*/0 * * * *"), "spec.schedule", "a step such as */15"),
		Entry("with a step without a number", at("*/ * * * *"), "spec.schedule", "a step such as */15"),
		Entry("with two steps", at("*/2/3 * * * *"), "spec.schedule", "a step such as */15"),
		Entry("with a hash for the minute", at("H * * * *"), "spec.schedule", "the minute"),
		Entry("with hour 24", at("0 24 * * *"), "spec.schedule", "second field, the hour, must be * or 0 to 23"),
		Entry("with an hour and a half", at("0 1.5 * * *"), "spec.schedule", "the hour"),
		Entry("with day 0", at("0 0 0 * *"), "spec.schedule", "third field, the day of the month, must be * or 1 to 31"),
		Entry("with day 32", at("0 0 32 * *"), "spec.schedule", "the day of the month"),
		Entry("with the last day", at("0 0 L * *"), "spec.schedule", "the day of the month"),
		Entry("with a working day", at("0 0 15W * *"), "spec.schedule", "the day of the month"),
		Entry("with month 0", at("0 0 1 0 *"), "spec.schedule", "fourth field, the month, must be * or 1 to 12 or jan to dec"),
		Entry("with month 13", at("0 0 1 13 *"), "spec.schedule", "the month"),
		Entry("with a month in full", at("0 0 1 january *"), "spec.schedule", "the month"),
		Entry("with day 7 of the week", at("0 0 * * 7"), "spec.schedule", "fifth field, the day of the week, must be * or 0 to 6 or sun to sat (Sunday is 0)"),
		Entry("with a day of the week in full", at("0 0 * * monday"), "spec.schedule", "the day of the week"),
		Entry("with a week of the month", at("0 0 * * 1#2"), "spec.schedule", "the day of the week"),
		Entry("with two fields that are wrong", at("60 24 * * *"), "the minute", "the hour"),

		Entry("with an empty timeZone", with(`timeZone: "", `), "spec.timeZone", zone),
		Entry("with a timeZone and a space before it", with(`timeZone: " UTC", `), "spec.timeZone", zone),
		Entry("with a timeZone and a space after it", with(`timeZone: "UTC ", `), "spec.timeZone", zone),
		Entry("with a timeZone of two words", with(`timeZone: "New York", `), "spec.timeZone", zone),
		Entry("with a timeZone that leads elsewhere", with(`timeZone: "../etc/passwd", `), "spec.timeZone", zone),
		Entry("with a timeZone that is a file", with(`timeZone: "/Europe/Berlin", `), "spec.timeZone", zone),
		Entry("with a timeZone that ends in a slash", with(`timeZone: "Europe/", `), "spec.timeZone", zone),
		Entry("with a timeZone that is an offset", with(`timeZone: "+02:00", `), "spec.timeZone", zone),
		Entry("with a timeZone of 65 characters", with(`timeZone: `+strings.Repeat("a", 65)+`, `), "spec.timeZone", "64"),
		Entry("with the timeZone Local", with(`timeZone: Local, `), "spec.timeZone", "must name a zone that is the same on every machine"),
		Entry("with the timeZone local", with(`timeZone: local, `), "spec.timeZone", "must name a zone that is the same on every machine"),

		Entry("with a negative startingDeadlineSeconds", with(`startingDeadlineSeconds: -1, `), "spec.startingDeadlineSeconds", "greater than or equal to 0"),
		Entry("with a startingDeadlineSeconds beyond all times", with(`startingDeadlineSeconds: 3155760001, `), "spec.startingDeadlineSeconds", "3155760000"),
		Entry("with half a second of deadline", with(`startingDeadlineSeconds: 0.5, `), "spec.startingDeadlineSeconds", "must be of type integer"),
		Entry("with a negative successfulJobsHistoryLimit", with(`successfulJobsHistoryLimit: -1, `), "spec.successfulJobsHistoryLimit", "greater than or equal to 0"),
		Entry("with a negative failedJobsHistoryLimit", with(`failedJobsHistoryLimit: -1, `), "spec.failedJobsHistoryLimit", "greater than or equal to 0"),
		Entry("with another concurrencyPolicy", with(`concurrencyPolicy: Queue, `), "spec.concurrencyPolicy", `"Allow", "Forbid", "Replace"`),
		Entry("with an empty concurrencyPolicy", with(`concurrencyPolicy: "", `), "spec.concurrencyPolicy", `"Allow", "Forbid", "Replace"`),
		Entry("with suspend in words", with(`suspend: "yes", `), "spec.suspend", "must be of type boolean"),
	)

	DescribeTable("rejects a CronJob whose jobTemplate", rejects(cronJob),
		Entry("is empty", running(`{}`), "spec.jobTemplate", "needs spec.template.spec with containers and a restartPolicy"),
		Entry("has an empty spec", running(`{spec: {}}`), "spec.jobTemplate.spec.template: Required value"),
		Entry("has an empty template", running(`{spec: {template: {}}}`), "spec.jobTemplate", "needs spec.template.spec with containers and a restartPolicy"),
		Entry("has no containers", running(`{spec: {template: {spec: {restartPolicy: Never}}}}`), "spec.jobTemplate.spec.template.spec.containers: Required value"),
		Entry("has an empty list of containers", running(`{spec: {template: {spec: {restartPolicy: Never, containers: []}}}}`), "spec.jobTemplate.spec.template.spec.containers", "needs at least one container"),
		Entry("has a container without an image", running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: it}]}}}}`), "spec.jobTemplate.spec.template.spec.containers", "every container needs an image"),
		Entry("has a container without a name", running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{image: it}]}}}}`), "spec.jobTemplate.spec.template.spec.containers[0].name: Required value"),
		Entry("has an init container without an image", running(job("", "restartPolicy: Never, initContainers: [{name: first}], ")), "spec.jobTemplate.spec.template.spec.initContainers", "every container needs an image"),
		Entry("has no restartPolicy", running(job("", "")), "spec.jobTemplate.spec.template.spec.restartPolicy", "must be OnFailure or Never"),
		Entry("restarts always", running(job("", "restartPolicy: Always, ")), "spec.jobTemplate.spec.template.spec.restartPolicy", "must be OnFailure or Never"),
		Entry("restarts sometimes", running(job("", "restartPolicy: Sometimes, ")), "spec.jobTemplate.spec.template.spec.restartPolicy", "must be OnFailure or Never"),
		Entry("restarts what a podFailurePolicy is for", running(job("podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}, ", "restartPolicy: OnFailure, ")),
			"spec.jobTemplate.spec.template.spec.restartPolicy", "must be Never where there is a podFailurePolicy"),
		Entry("has a name", running(`{metadata: {name: mine}, `+job("", "restartPolicy: Never, ")[1:]), "spec.jobTemplate.metadata.name", "must be left out: Jobs are named after the CronJob and their time"),
		Entry("has a namespace", running(`{metadata: {namespace: mine}, `+job("", "restartPolicy: Never, ")[1:]), "spec.jobTemplate.metadata.namespace", "must be left out: Jobs are in the namespace of the CronJob"),
		Entry("has a finalizer", running(`{metadata: {finalizers: [example.com/mine]}, `+job("", "restartPolicy: Never, ")[1:]), "spec.jobTemplate.metadata.finalizers", "must be left out"),
		Entry("has a name to begin with", running(`{metadata: {generateName: mine-}, `+job("", "restartPolicy: Never, ")[1:]), `unknown field "spec.jobTemplate.metadata.generateName"`),
		Entry("has a selector", doing("selector: {matchLabels: {a: b}}, "), "spec.jobTemplate.spec.selector", "must be left out"),
		Entry("has a selector by hand", doing("manualSelector: true, "), "spec.jobTemplate.spec.manualSelector", "must be left out"),
		Entry("runs less than no pod", doing("parallelism: -1, "), "spec.jobTemplate.spec.parallelism", "must be 0 or more"),
		Entry("completes less than never", doing("completions: -1, "), "spec.jobTemplate.spec.completions", "must be 0 or more"),
		Entry("backs off less than never", doing("backoffLimit: -1, "), "spec.jobTemplate.spec.backoffLimit", "must be 0 or more"),
		Entry("is active for less than no time", doing("activeDeadlineSeconds: -1, "), "spec.jobTemplate.spec.activeDeadlineSeconds", "must be 0 or more"),
		Entry("stays for less than no time", doing("ttlSecondsAfterFinished: -1, "), "spec.jobTemplate.spec.ttlSecondsAfterFinished", "must be 0 or more"),
		Entry("backs off an index less than never", doing("completionMode: Indexed, completions: 1, backoffLimitPerIndex: -1, "), "spec.jobTemplate.spec.backoffLimitPerIndex", "must be 0 or more"),
		Entry("fails less than no index", doing("completionMode: Indexed, completions: 1, backoffLimitPerIndex: 1, maxFailedIndexes: -1, "), "spec.jobTemplate.spec.maxFailedIndexes", "must be 0 or more"),
		Entry("has another completionMode", doing("completionMode: Random, "), "spec.jobTemplate.spec.completionMode", "must be Indexed or NonIndexed"),
		Entry("is indexed without completions", doing("completionMode: Indexed, "), "spec.jobTemplate.spec.completions", "must be set where completionMode is Indexed"),
		Entry("has a limit for each index and none", doing("backoffLimitPerIndex: 1, "), "spec.jobTemplate.spec.backoffLimitPerIndex", "needs the completionMode Indexed"),
		Entry("has a limit of indexes and none for each", doing("completionMode: Indexed, completions: 1, maxFailedIndexes: 1, "), "spec.jobTemplate.spec.maxFailedIndexes", "needs a backoffLimitPerIndex"),
		Entry("has a successPolicy and no indexes", doing("successPolicy: {rules: [{succeededCount: 1}]}, "), "spec.jobTemplate.spec.successPolicy", "needs the completionMode Indexed"),
		Entry("has another podReplacementPolicy", doing("podReplacementPolicy: Never, "), "spec.jobTemplate.spec.podReplacementPolicy", "must be Failed or TerminatingOrFailed"),
		Entry("replaces what a podFailurePolicy waits for", doing("podReplacementPolicy: TerminatingOrFailed, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}, "),
			"spec.jobTemplate.spec.podReplacementPolicy", "Failed where there is a podFailurePolicy"),
		// Kubernetes takes these two of a Job, and does not take them of a custom resource.
		Entry("has a variable twice", running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: it, image: it, env: [{name: A, value: b}, {name: A, value: c}]}]}}}}`),
			"spec.jobTemplate.spec.template.spec.containers[0].env[1]: Duplicate value"),
		Entry("has a time of creation", running(`{metadata: {creationTimestamp: null}, `+job("", "restartPolicy: Never, ")[1:]), `unknown field "spec.jobTemplate.metadata.creationTimestamp"`),
		Entry("has an unknown field", doing("retries: 3, "), `unknown field "spec.jobTemplate.spec.retries"`),
		Entry("has a container with an unknown field", running(`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: it, image: it, cmd: [it]}]}}}}`),
			`unknown field "spec.jobTemplate.spec.template.spec.containers[0].cmd"`),
	)

	DescribeTable("takes a CronJob", func(ctx context.Context, bodies ...string) {
		for _, body := range bodies {
			Expect(create(ctx, cronJob.apiVersion, cronJob.name, body, client.DryRunAll)).To(Succeed(), body)
		}
	},
		Entry("at every minute", at("* * * * *"), at("? ? ? ? ?"), at("*/1 */1 */1 */1 */1")),
		Entry("at numbers", at("0 0 1 1 0"), at("59 23 31 12 6"), at("05 08 01 02 03"), at("00 00 01 01 00")),
		Entry("at names", at("0 0 1 jan sun"), at("0 0 * JUL,Aug Mon-FRI"), at("0 0 * jan-6 1-fri")),
		Entry("at ranges", at("0-59 0-23 1-31 1-12 0-6"), at("0-30 8-17 1-7 4-9 mon-fri")),
		Entry("at steps", at("*/15 */2 */10 */3 */2"), at("5/15 0-20/4 1-15/2 2/3 mon-fri/2"), at("*/05 */90 * * *")),
		Entry("at lists", at("0,15,30,45 6,12-14,20/2 1,15,*/10 1,apr-jun,12 sat,sun"), at("0 9 1-7,15-21 * ?")),
		Entry("with more space than it needs", at("  0   6  * *   mon  "), at(`0\t6\t*\t*\tmon`)),
		Entry("by name", at("@yearly"), at("@annually"), at("@monthly"), at("@weekly"), at("@daily"), at("@midnight"), at("@hourly")),
		Entry("by duration", at("@every 1s"), at("@every 90m"), at("@every 1h30m"), at("@every 1h30m10s"), at("@every 48h"), at("@every 0h5m"), at("@every 1h5s"), at("@every 86400s"), at("@every 999999h9999999m999999999s")),
		// What only the operator sees, it tells in the condition Degraded.
		Entry("that ends before it begins or never comes", at("30-10 * * * *"), at("0 0 * * fri-mon"), at("0 0 30 feb *")),
		Entry("with a time zone", with(`timeZone: UTC, `), with(`timeZone: Europe/Berlin, `), with(`timeZone: America/Argentina/Buenos_Aires, `), with(`timeZone: Etc/GMT-14, `),
			with(`timeZone: Etc/GMT+12, `), with(`timeZone: EST5EDT, `), with(`timeZone: America/Port-au-Prince, `), with(`timeZone: GB-Eire, `), with(`timeZone: Atlantis/Nowhere, `)),
		Entry("with the longest name", `{metadata: {name: `+strings.Repeat("a", 52)+`}, `+with("")[1:], `{metadata: {name: a.b-c.9}, `+with("")[1:]),
		Entry("with the longest schedule", at("*/5 * * * *"+strings.Repeat(" ", 245))),
		Entry("with the least", with(`startingDeadlineSeconds: 0, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0, suspend: true, `)),
		Entry("with the most", with(`startingDeadlineSeconds: 3155760000, successfulJobsHistoryLimit: 2147483647, failedJobsHistoryLimit: 2147483647, `)),
		Entry("with every concurrencyPolicy", with(`concurrencyPolicy: Allow, `), with(`concurrencyPolicy: Forbid, `), with(`concurrencyPolicy: Replace, `)),
		Entry("with Jobs of no pods", doing("parallelism: 0, completions: 0, backoffLimit: 0, activeDeadlineSeconds: 0, ttlSecondsAfterFinished: 0, manualSelector: false, suspend: true, ")),
		Entry("with indexed Jobs", doing("completionMode: Indexed, completions: 3, parallelism: 3, backoffLimitPerIndex: 0, maxFailedIndexes: 1, successPolicy: {rules: [{succeededCount: 1}]}, ")),
		Entry("with Jobs that know their failures", doing("completionMode: NonIndexed, podReplacementPolicy: Failed, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [3]}}]}, "),
			doing("podReplacementPolicy: TerminatingOrFailed, ")),
		Entry("with Jobs that restart on failure", running(job("", "restartPolicy: OnFailure, "))),
		Entry("with fields that are empty, as templates leave them", with(`timeZone: null, startingDeadlineSeconds: null, suspend: null, `), running(job("", "restartPolicy: Never, affinity: null, nodeSelector: null, volumes: null, "))),
	)

	// What is stored is what has been written: nothing of it is dropped or changed.
	It("takes a CronJob as people have them, with kubectl apply", func(ctx context.Context) {
		content, err := os.ReadFile("testdata/cronjob.yaml")
		Expect(err).NotTo(HaveOccurred())
		var written tutorialv1.CronJob
		Expect(yaml.UnmarshalStrict(content, &written)).To(Succeed())
		for range 2 {
			out, err := cp.Kubectl("--namespace", ns, "apply", "-f", "testdata/cronjob.yaml")
			Expect(err).NotTo(HaveOccurred(), out)
			Expect(out).NotTo(ContainSubstring("Warning"))
		}
		stored := &unstructured.Unstructured{}
		stored.SetAPIVersion(cronJob.apiVersion)
		stored.SetKind(cronJob.name)
		stored.SetNamespace(ns)
		stored.SetName(written.Name)
		read := &tutorialv1.CronJob{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(get(ctx, stored).Object, read)).To(Succeed())
		Expect(read.Spec).To(BeComparableTo(written.Spec))
		Expect(read.Annotations).To(HaveKey(corev1.LastAppliedConfigAnnotation))
	})

	It("fills in what a CronJob leaves open", func(ctx context.Context) {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(with("")), &object.Object)).To(Succeed())
		object.SetAPIVersion(cronJob.apiVersion)
		object.SetKind(cronJob.name)
		object.SetNamespace(ns)
		object.SetName("one")
		Expect(k8s.Create(ctx, object, client.DryRunAll)).To(Succeed())
		spec := object.Object["spec"].(map[string]any)
		delete(spec, "jobTemplate")
		Expect(spec).To(Equal(map[string]any{"schedule": "@daily", "concurrencyPolicy": "Allow", "suspend": false,
			"successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(1)}))
	})

	// Of what is applied so, an annotation notes all; of a definition that is too large, the API server does not take it.
	It("takes the CustomResourceDefinitions with kubectl apply", func(ctx context.Context) {
		out, err := cp.Kubectl("apply", "--dry-run=server", "-k", testenv.Root()+"/config/crd")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(strings.Count(out, "configured (server dry run)")).To(Equal(3), out)
	})

	It("takes the longest and the largest that is allowed", func(ctx context.Context) {
		Expect(create(ctx, kinds[0].apiVersion, "Foo", `{spec: {deploymentName: `+strings.Repeat("a", 253)+`, replicas: 2147483647}}`, client.DryRunAll)).To(Succeed())
		Expect(create(ctx, kinds[1].apiVersion, "Memcached", `{spec: {size: 5000}}`, client.DryRunAll)).To(Succeed())
	})
})
