package contract

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/testenv"
)

// Webhooks of other vendors can reject or delay writes.
var _ = Describe("With a webhook in the cluster, the operator", func() {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) })

	for _, k := range kinds {
		for code, reason := range map[int32]metav1.StatusReason{http.StatusConflict: metav1.StatusReasonConflict,
			http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
			http.StatusInternalServerError: metav1.StatusReasonInternalError} {
			It(fmt.Sprintf("backs off and reports when the webhook answers %d for a %s of a %s", code, k.Children[0].Kind,
				k.Title()), func(ctx context.Context) {
				remove := webhook(ctx, ns, k,
					func(http.ResponseWriter, *http.Request) *admissionv1.AdmissionResponse {
						return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure, Code: code,
							Reason: reason, Message: "another writer was first"}}
					})
				mark := cp.Audit.Now()
				object := k.Make(ns, "one", 1)
				k.put(ctx, object)
				degraded := "Degraded=True/Error"
				if code == http.StatusUnprocessableEntity {
					degraded = "Degraded=True/Refused"
				}
				k.eventually(ctx, object, degraded)
				Expect(k.message(object, "Degraded")).To(ContainSubstring("another writer was first"))
				time.Sleep(3 * time.Second)
				writes := requests(mark, ns, func(r testenv.Request) bool {
					return r.IsWrite() && r.Resource == k.Children[0].Resource
				})
				Expect(len(writes)).To(BeNumerically("<=", 16), "retried without backing off: %v", writes)
				remove(ctx)
				Eventually(ctx, k.conditionsOf(object)).Should(settled)
			})
		}
	}

	for _, k := range kinds {
		It("reports within a minute that a webhook hangs for a "+k.Children[0].Kind+" of a "+k.Title(),
			func(ctx context.Context) {
				released := make(chan struct{})
				remove := webhook(ctx, ns, k,
					func(_ http.ResponseWriter, request *http.Request) *admissionv1.AdmissionResponse {
						select {
						case <-released:
						case <-request.Context().Done():
						}
						return &admissionv1.AdmissionResponse{Allowed: true}
					})
				object := k.Make(ns, "one", 1)
				k.put(ctx, object)
				Eventually(ctx, k.conditionsOf(object)).WithTimeout(time.Minute).
					Should(HaveKeyWithValue("Degraded", "True/Error"))
				Expect(k.message(object, "Degraded")).To(ContainSubstring(k.Children[0].Kind))
				close(released)
				remove(ctx)
				Eventually(ctx, k.conditionsOf(object)).WithTimeout(time.Minute).Should(settled)
			})

		// As injectors of sidecars do.
		It("leaves alone what a webhook adds to a "+k.Children[0].Kind+" of a "+k.Title(), func(ctx context.Context) {
			mutatingWebhook(ctx, ns, k,
				`[{"op":"add","path":"/metadata/annotations/injected","value":"yes"},
				{"op":"add","path":"/spec/template/spec/hostname","value":"injected"}]`)
			object := k.create(ctx, k.Make(ns, "one", 1))
			child := k.own(ctx, object)[0]
			Expect(child.GetAnnotations()).To(HaveKeyWithValue(injected, "yes"))
			mark := cp.Audit.Now()
			k.passOnStatusOf(ctx, child)
			Expect(requests(mark, ns, testenv.Request.IsWrite)).To(BeEmpty())
		})
	}

	It("repairs a child soon after the policy that altered it was deleted", func(ctx context.Context) {
		k := kinds[1]
		remove := change(ctx, k, ns, `Object{metadata: Object.metadata{labels: {"app": "theirs"}}}`)
		object := k.Make(ns, "one", 1)
		k.create(ctx, object)
		deployment := k.own(ctx, object)[0].(*appsv1.Deployment)
		Expect(deployment.Labels).To(HaveKeyWithValue("app", "theirs"))
		remove(ctx)
		Eventually(ctx, func() map[string]string { return get(ctx, deployment).Labels }).
			Should(HaveKeyWithValue("app", "memcached"))
	})
})

// webhook adds a webhook for every write of the first child of a kind in a namespace, and waits until the API server
// calls it. It returns a function that removes the webhook, which is also removed after the spec.
func webhook(ctx context.Context, namespace string, k kind,
	review func(http.ResponseWriter, *http.Request) *admissionv1.AdmissionResponse) (remove func(context.Context)) {
	GinkgoHelper()
	config := serve(func(w http.ResponseWriter, r *http.Request, isDryRun bool) *admissionv1.AdmissionResponse {
		if isDryRun {
			return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"asked"}}
		}
		return review(w, r)
	})
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook-" + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "webhook.example.com", ClientConfig: config, NamespaceSelector: only(namespace),
			Rules:                   writesOf(k),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	remove = put(ctx, configuration)
	warnings, warned := &warningRecorder{}, *cp.Config
	warned.WarningHandler = warnings
	c, err := client.New(&warned, client.Options{Scheme: k8s.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func() []string {
		Expect(c.Create(ctx, k.Unmanaged(namespace, "probe"), client.DryRunAll)).To(Succeed())
		return warnings.texts
	}).Should(ContainElement("asked"), "the API server does not call the webhook")
	return remove
}

// injected is an annotation that mutatingWebhook's patch must add.
const injected = "injected"

// mutatingWebhook adds a webhook that changes every write of the first child of a kind in a namespace by a JSON patch,
// which adds the annotation injected, and waits until the API server calls it. It is removed after the spec.
func mutatingWebhook(ctx context.Context, namespace string, k kind, patch string) {
	GinkgoHelper()
	config := serve(func(http.ResponseWriter, *http.Request, bool) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch),
			PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
	})
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "webhook-" + namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "webhook.example.com", ClientConfig: config, NamespaceSelector: only(namespace),
			Rules:                   writesOf(k),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	put(ctx, configuration)
	Eventually(ctx, func() map[string]string {
		probe := k.Unmanaged(namespace, "probe")
		probe.SetAnnotations(map[string]string{"probe": "yes"})
		Expect(k8s.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		return probe.GetAnnotations()
	}).Should(HaveKey(injected), "the API server does not call the webhook")
}

// serve starts a server of a webhook, which ends with the spec, and returns the client configuration for it.
func serve(review func(w http.ResponseWriter, r *http.Request, isDryRun bool) *admissionv1.AdmissionResponse) (
	config admissionregistrationv1.WebhookClientConfig) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := review(w, r, ptr.Deref(asked.Request.DryRun, false))
		answer.UID = asked.Request.UID
		_ = json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: asked.TypeMeta, Response: answer})
	}))
	DeferCleanup(server.Close)
	return admissionregistrationv1.WebhookClientConfig{URL: &server.URL,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

func writesOf(k kind) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{k.Children[0].Group}, APIVersions: []string{"*"},
			Resources: []string{k.Children[0].Resource}},
	}}
}

// warningRecorder collects the warnings of the API server.
type warningRecorder struct{ texts []string }

// HandleWarningHeader implements [k8s.io/client-go/rest.WarningHandler].
func (w *warningRecorder) HandleWarningHeader(_ int, _, text string) {
	w.texts = append(w.texts, text)
}
