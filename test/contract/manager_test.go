package contract

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	testkinds "github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// end is the exit code and the output of a manager.
type end struct {
	Code   int
	Output string
}

// missingCRD is how the manager ends on a cluster without its CustomResourceDefinitions.
var missingCRD end

// endOf runs the manager with a kubeconfig ("" for an administrator's of the test cluster) until it ends.
func endOf(ctx context.Context, kubeconfig string, flags ...string) end {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if kubeconfig == "" {
		kubeconfig = cp.AdminKubeconfig()
	}
	command := exec.CommandContext(ctx, program, append([]string{"--kubeconfig=" + kubeconfig,
		"--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags...)...)
	command.Env = testenv.Environment()
	out, _ := command.CombinedOutput()
	return end{command.ProcessState.ExitCode(), string(out)}
}

var _ = Describe("The manager", ownManager, SpecPriority(2), func() {
	It("prints its version, and its flags with --help", func(ctx context.Context) {
		Expect(endOf(ctx, "", "--version")).To(And(
			HaveField("Code", 0),
			HaveField("Output", MatchRegexp(`^memcached-operator v9\.9\.9, commit abcdef, go1\.\d+\S* \w+/\w+\n$`))))
		Expect(endOf(ctx, "", "--help")).To(And(HaveField("Code", 0), HaveField("Output", And(
			ContainSubstring("-leader-elect"), ContainSubstring("WATCH_NAMESPACE"),
			ContainSubstring("RELATED_IMAGE_MEMCACHED")))))
	})

	DescribeTable("ends with 2 and an explanation of the wrong flag", func(ctx context.Context, flag, message string) {
		Expect(endOf(ctx, "", flag)).
			To(And(HaveField("Code", 2), HaveField("Output", And(ContainSubstring(message), HavePrefix("manager: ")))))
	},
		Entry("unknown", "--bogus", "flag provided but not defined: -bogus; see --help"),
		Entry("no number", "--workers=many", `invalid value "many" for flag -workers`),
		Entry("too few workers", "--workers=0", "--workers is 0: it must be at least 1"),
		Entry("too short a period", "--sync-period=1ms", "--sync-period is 1ms: it must be at least 1s"),
		Entry("unknown kind", "--controllers=foo,bar",
			`--controllers contains "bar": it must be *, or a list of foo,memcached,cronjob`),
		Entry("unknown level", "--log-level=loud", `invalid value "loud" for flag -log-level`),
		Entry("unknown format", "--log-format=xml", `--log-format is "xml": it must be json or text`),
		Entry("no certificate", "--metrics-cert-dir=/nonexistent", `--metrics-cert-dir is "/nonexistent"`),
		Entry("argument", "run", `unexpected argument "run"`),
	)

	It("ends with 0 on SIGTERM during startup", func(ctx context.Context) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		command := exec.CommandContext(ctx, program, "--kubeconfig="+kubeconfigFor("http://"+silent.Addr().String()))
		command.Env = testenv.Environment()
		Expect(command.Start()).To(Succeed())
		asked, err := silent.Accept()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(asked.Close)
		Expect(command.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(command.Wait()).To(Succeed())
	})

	It("ends with 1 and an explanation without a kubeconfig", func(ctx context.Context) {
		Expect(endOf(ctx, "/nonexistent")).
			To(And(HaveField("Code", 1),
				HaveField("Output", ContainSubstring("set --kubeconfig or KUBECONFIG"))))
	})

	It("ends with 1 and an explanation when the API server does not answer", func(ctx context.Context) {
		Expect(endOf(ctx, kubeconfigFor("https://127.0.0.1:1"))).To(And(HaveField("Code", 1), HaveField("Output", And(
			ContainSubstring("cannot reach the Kubernetes API server at https://127.0.0.1:1"),
			ContainSubstring("connection refused"), ContainSubstring("--kubeconfig")))))
	})

	It("names the missing CustomResourceDefinition, and the command that installs it, and ends with 1", func() {
		Expect(missingCRD).To(And(HaveField("Code", 1), HaveField("Output", And(
			ContainSubstring("does not serve Foo in samplecontroller.k8s.io/v1alpha1"),
			ContainSubstring("foos.samplecontroller.k8s.io"),
			ContainSubstring("kubectl apply -k config/crd")))))
	})

	It("ends with 0 on SIGTERM and releases the lease, logs in JSON, and logs nothing when all is settled",
		func(ctx context.Context) {
			startDefault(ctx)
			stop()
			Expect(*get(ctx, lease()).Spec.HolderIdentity).To(BeEmpty())
			start(ctx, nil)
			Eventually(func() int { return strings.Count(manager.Logs(), "Starting workers") }).Should(Equal(len(testkinds.All)))
			// Generating its key takes a while with the race detector.
			Eventually(manager.Logs).Should(ContainSubstring("Serving metrics server"))
			before := len(manager.Logs())
			time.Sleep(time.Second)
			for line := range strings.Lines(manager.Logs()[before:]) { // passes are logged for the tests
				Expect(line).To(ContainSubstring(`"level":"DEBUG`))
			}
			for line := range strings.Lines(manager.Logs()) {
				Expect(line).To(HavePrefix(`{"time":`))
			}
		})

	It("has another manager take over when it ends", func(ctx context.Context) {
		startDefault(ctx)
		second, err := startProgram(ctx, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(second.WaitUntilReady(ctx)).To(Succeed(), "one that stands by is ready too")
		first := *get(ctx, lease()).Spec.HolderIdentity
		Expect(second.Logs()).NotTo(ContainSubstring("Starting workers"))

		Expect(manager.Signal(syscall.SIGTERM)).To(Succeed())
		manager, managers = second, append(managers, second)
		Eventually(ctx, func() string { return *get(ctx, lease()).Spec.HolderIdentity }).
			Should(And(Not(BeEmpty()), Not(Equal(first))))
		ns := newNamespace(ctx)
		kinds[0].create(ctx, kinds[0].Make(ns, "one", 1))
	})

	It("leads again when its container crashes and is restarted, without waiting for the end of its own lease",
		func(ctx context.Context) {
			pod := []string{"POD_UID=" + newNamespace(ctx)} // a name that no other manager has
			restart(ctx, pod)
			Eventually(manager.Logs).Should(ContainSubstring("Starting workers"))
			before := get(ctx, lease()).Spec
			manager.Kill()
			start(ctx, pod)
			Eventually(manager.Logs).Should(ContainSubstring("Starting workers"))
			after := get(ctx, lease()).Spec
			Expect(after.HolderIdentity).To(Equal(before.HolderIdentity))
			Expect(after.LeaseTransitions).To(Equal(before.LeaseTransitions))
		})

	Describe("with WATCH_NAMESPACE, and resyncs each second", Ordered, func() {
		var inside, also, outside string
		BeforeAll(func(ctx context.Context) {
			inside, also, outside = newNamespace(ctx), newNamespace(ctx), newNamespace(ctx)
			// as if the API server could not stream lists, for which the operator needs the permission to list
			restart(ctx, []string{"WATCH_NAMESPACE=" + inside + "," + also, "KUBE_FEATURE_WatchListClient=false"},
				"--sync-period=1s")
		})

		It("works in these namespaces only", func(ctx context.Context) {
			for _, k := range kinds {
				unseen := k.Make(outside, k.ObjectName(), 1)
				Expect(k8s.Create(ctx, unseen)).To(Succeed())
				for _, ns := range []string{inside, also} {
					k.own(ctx, k.create(ctx, k.Make(ns, k.ObjectName(), 1)))
				}
				Expect(k.Conditions(get(ctx, unseen))).To(BeEmpty())
			}
		})

		It("sends no request for a resync", func(context.Context) {
			mark := cp.Audit.Now()
			for _, ns := range []string{inside, also} {
				for _, k := range kinds { // each has an object in each of the two namespaces
					before := passes(k.Controller(), ns)
					Eventually(func() int { return passes(k.Controller(), ns) }).Should(BeNumerically(">=", before+3))
				}
			}
			time.Sleep(200 * time.Millisecond)
			report("requests for three resyncs of each kind", len(requests(mark, inside))+len(requests(mark, also)), 0)
		})
	})

	It("leaves the user of pods to a cluster that assigns them, as OpenShift does", func(ctx context.Context) {
		ns := newNamespace(ctx)
		userOf := func(object client.Object, k kind) *int64 {
			return template(k.own(ctx, object)[0]).Spec.SecurityContext.RunAsUser
		}
		groups := func() string { return kubectl("get", "--raw", "/apis") }
		startDefault(ctx)
		var objects []client.Object
		for i, k := range deploying {
			objects = append(objects, k.create(ctx, k.Make(ns, k.ObjectName(), 1)))
			Expect(*userOf(objects[i], k)).To(BeNumerically(">", 0))
		}

		kubectl("apply", "-f", "testdata/openshift.yaml")
		DeferCleanup(func() {
			kubectl("delete", "--ignore-not-found", "-f", "testdata/openshift.yaml")
			Eventually(groups).ShouldNot(ContainSubstring("security.openshift.io"))
		})
		Eventually(groups).Should(ContainSubstring("security.openshift.io"))
		restart(ctx, []string{"WATCH_NAMESPACE=" + ns})
		for i, k := range deploying {
			Eventually(ctx, func() *int64 { return userOf(objects[i], k) }).Should(BeNil(),
				"what is not wanted any more is taken back")
			Eventually(ctx, k.conditionsOf(objects[i])).Should(settled)
		}
	})

	// OLM first upgrades to a manager without the Subscription's settings.
	It("runs the images that the environment names after --image-delay, and replaces one node at a time",
		func(ctx context.Context) { changesImagesAfterTheDelay(ctx, newNamespace(ctx)) })

	It("is alive but not ready while it lacks the permission to watch", func(ctx context.Context) {
		ns := newNamespace(ctx)
		role := get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "memcached-operator-manager-role"}})
		blind := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "blind"}}
		for _, rule := range role.Rules {
			rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources),
				func(resource string) bool { return resource == "pods" })
			if len(rule.Resources) > 0 {
				blind.Rules = append(blind.Rules, rule)
			}
		}
		Expect(k8s.Create(ctx, blind)).To(Succeed())
		Expect(k8s.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "blind"}})).
			To(Succeed())
		Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "blind"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "blind"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "blind"}},
		})).To(Succeed())
		kubeconfig, err := cp.Kubeconfig(ctx, ns, "blind")
		Expect(err).NotTo(HaveOccurred())

		one, err := startProgram(ctx, nil, "--kubeconfig="+kubeconfig, "--leader-elect=false",
			"--controllers=memcached")
		Expect(err).NotTo(HaveOccurred())
		defer one.Kill()
		answer := func(path string) func() int {
			return func() int {
				response, err := http.Get(one.ProbeURL + path)
				if err != nil {
					return 0
				}
				defer response.Body.Close()
				return response.StatusCode
			}
		}
		Eventually(answer("/healthz")).Should(Equal(http.StatusOK))
		Eventually(one.Logs).Should(ContainSubstring("pods is forbidden"))
		Consistently(answer("/readyz")).WithTimeout(2 * time.Second).Should(Equal(http.StatusInternalServerError))
	})

	for _, named := range kinds[1:] {
		if named.Variant != "" {
			continue
		}
		It("works on "+named.Name+"s only if --controllers names no other kind", func(ctx context.Context) {
			ns := newNamespace(ctx)
			restart(ctx, nil, "--controllers="+named.Controller())
			objects := make([]client.Object, len(kinds))
			for i, k := range kinds {
				objects[i] = k.Make(ns, k.ObjectName(), 1)
				if k.Name != named.Name {
					Expect(k8s.Create(ctx, objects[i])).To(Succeed())
				}
			}
			named.create(ctx, named.Make(ns, "one", 1))
			for i, k := range kinds {
				if k.Name != named.Name {
					Expect(k.Conditions(get(ctx, objects[i]))).To(BeEmpty(), k.Name)
				}
			}
			holder := get(ctx, leaseNamed(named.Controller()+".memcached-operator.example.com")).Spec.HolderIdentity
			Expect(holder).NotTo(BeNil(), "managers of other kinds do not compete for the lease")
		})
	}
})

var _ = Describe("The running manager", func() {
	It("is alive and ready, and serves metrics to authorized clients only", func(ctx context.Context) {
		for _, path := range []string{"/healthz", "/readyz"} {
			response, err := http.Get(manager.ProbeURL + path)
			Expect(err).NotTo(HaveOccurred())
			response.Body.Close()
			Expect(response.StatusCode).To(Equal(http.StatusOK), path)
		}
		code, body := scrape(scraper)
		Expect(code).To(Equal(http.StatusOK))
		Expect(body).To(ContainSubstring("controller_runtime_"))

		for _, wrong := range []string{"", "wrong", scraper + "x"} {
			code, body = scrape(wrong)
			Expect(code).To(Equal(http.StatusUnauthorized))
			Expect(body).To(Equal("Unauthorized\n"))
		}
		Expect(k8s.Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unauthorized"}})).To(Succeed())
		unauthorized, err := cp.Token(ctx, "default", "unauthorized")
		Expect(err).NotTo(HaveOccurred())
		mark := cp.Audit.Now()
		for range 3 {
			code, body = scrape(unauthorized)
			Expect(code).To(Equal(http.StatusForbidden))
			Expect(body).To(Equal("Forbidden\n"))
		}
		Expect(cp.Audit.Since(mark, func(r testenv.Request) bool {
			return r.User == testenv.OperatorUser &&
				(r.Resource == "tokenreviews" || r.Resource == "subjectaccessreviews")
		})).To(HaveLen(2), "answers are used again")
	})

	It("reconciles the samples, and can be installed from one file", func(ctx context.Context) {
		ns := newNamespace(ctx)
		kubectl("-n", ns, "apply", "-k", testenv.Root()+"/config/samples")
		Eventually(ctx, kinds[0].conditionsOf(newFoo(ns, "foo-sample", "", nil))).Should(settled)
		Eventually(ctx, kinds[1].conditionsOf(newMemcached(ns, "memcached-sample", 0))).Should(settled)
		Eventually(ctx, kinds[2].conditionsOf(newCronJob(ns, "cronjob-sample", ""))).Should(And(
			HaveKeyWithValue("Available", "True/Scheduled"), HaveKeyWithValue("Degraded", "False/AsExpected")))

		file := GinkgoT().TempDir() + "/install.yaml"
		Expect(os.WriteFile(file, []byte(kubectl("kustomize", testenv.Root()+"/config/default")), 0o600)).To(Succeed())
		kubectl("label", "namespace", testenv.OperatorNamespace, "pod-security.kubernetes.io/warn=restricted", "--overwrite")
		out := kubectl("apply", "--server-side", "--dry-run=server", "-f", file)
		Expect(out).
			To(And(ContainSubstring("deployment.apps/memcached-operator-controller-manager"), Not(ContainSubstring("Warning"))))
	})
})

// changesImagesAfterTheDelay starts managers with other images, first with a delay that does not end.
func changesImagesAfterTheDelay(ctx context.Context, ns string) {
	GinkgoHelper()
	startDefault(ctx)
	foo, mc := newFoo(ns, "foo", "foo", ptr.To[int32](1)), newMemcached(ns, "memcached", 5)
	waiting := newFoo(ns, "waiting", "former", ptr.To[int32](1))
	Expect(k8s.Create(ctx, testkinds.NewDeployment(ns, "taken", 0))).To(Succeed())
	kinds[0].create(ctx, foo)
	kinds[0].create(ctx, waiting)
	kinds[1].create(ctx, mc)
	edit(ctx, waiting, func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "taken" })
	kinds[0].eventually(ctx, waiting, "Degraded=True/NameTaken")
	images := func() (images []string) {
		for _, name := range []string{"foo", "former", "memcached"} {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
			images = append(images, get(ctx, deployment).Spec.Template.Spec.Containers[0].Image)
		}
		return images
	}
	before := []string{"nginx:latest", "nginx:latest", "docker.io/library/memcached:1.6.45-alpine"}
	Expect(images()).To(Equal(before))

	environment := []string{"WATCH_NAMESPACE=" + ns, "RELATED_IMAGE_NGINX=example.com/n:2",
		"RELATED_IMAGE_MEMCACHED=example.com/m:2"}
	restart(ctx, environment, "--image-delay=1h")
	kubectl("-n", ns, "scale", "--replicas=2", kinds[0].CRD()+"/foo") // other changes are not delayed
	kubectl("-n", ns, "scale", "--replicas=6", kinds[1].CRD()+"/memcached")
	Eventually(ctx, kinds[0].conditionsOf(foo)).Should(settled)
	Eventually(ctx, kinds[1].conditionsOf(mc)).Should(settled)
	Expect(images()).To(Equal(before))

	rollout, err := k8s.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(ns),
		client.MatchingFields{metav1.ObjectNameField: "memcached"})
	Expect(err).NotTo(HaveOccurred())
	defer rollout.Stop()
	restart(ctx, environment, "--image-delay=10s")
	Consistently(ctx, images).WithTimeout(2 * time.Second).Should(Equal(before))
	Eventually(ctx, images).Should(Equal([]string{"example.com/n:2", "example.com/n:2", "example.com/m:2"}))
	for {
		deployment := (<-rollout.ResultChan()).Object.(*appsv1.Deployment)
		Expect(deployment.Status.AvailableReplicas).To(BeNumerically(">=", 5))
		if status := deployment.Status; deployment.Spec.Template.Spec.Containers[0].Image == "example.com/m:2" &&
			status.ObservedGeneration == deployment.Generation &&
			status.UpdatedReplicas == 6 && status.AvailableReplicas == 6 {
			break
		}
	}
	Eventually(ctx, func(g Gomega) {
		var pods corev1.PodList
		g.Expect(k8s.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{"app": "memcached"})).To(Succeed())
		slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		g.Expect(pods.Items).To(HaveLen(6))
		g.Expect(get(ctx, mc).Status.Nodes).To(Equal(namesOf(pods.Items)))
	}).Should(Succeed())
	Eventually(ctx, kinds[1].conditionsOf(mc)).Should(settled)
}

// kubeconfigFor writes a kubeconfig without credentials and returns its path.
func kubeconfigFor(server string) string {
	GinkgoHelper()
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a"}
	config.CurrentContext = "a"
	path := GinkgoT().TempDir() + "/kubeconfig"
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

func lease() *coordinationv1.Lease {
	return leaseNamed("memcached-operator.example.com")
}

func leaseNamed(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.OperatorNamespace, Name: name}}
}
