package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is how many resources of each kind live through an upgrade.
const fleet = 20

var _ = Describe("Upgraded from the last release", func() {
	DescribeTable("goes on with what it finds",
		func(ctx SpecContext, approval operatorsv1alpha1.Approval) {
			cleanUp(deleteRemains)
			cleanUp(deleteDefinitions)
			newNamespace(ctx, operatorNamespace)
			i := subscribe(ctx, "released", approval)
			cleanUp(i.remove)
			if approval == operatorsv1alpha1.ApprovalManual {
				i.approve(ctx, last)
			}
			i.awaitInstalled(ctx, last)

			had, added := kindsOf(last)
			for _, k := range added {
				expectNoDefinitions(ctx, "the last release has no "+k.Name, k.CRD())
			}

			namespace := newNamespace(ctx, "fleet-")
			objects := makeFleet(ctx, namespace, had)
			before := look(ctx, namespace)
			Expect(before.pods).To(HaveLen(growing(had) * fleet))
			b := startBeacon(ctx, namespace)
			changes := startChanging(ctx, had, objects)

			i.offer(ctx, "tree")
			if approval == operatorsv1alpha1.ApprovalManual {
				i.approve(ctx, tree)
			}
			i.awaitInstalled(ctx, tree)
			awaitSettledLeader(ctx)
			b.awaitAnswer(ctx)
			grown, touched := changes.stop()
			gap := b.stop()
			Expect(grown).To(HaveLen(growing(had) * fleet / 2))

			for k, list := range objects {
				awaitSettled(ctx, had[k], list...)
			}
			deleteAll(ctx, b.foo)
			after := look(ctx, namespace)
			for uid, restarts := range before.pods {
				Expect(after.pods).To(HaveKeyWithValue(uid, restarts), "a pod of an operand was replaced or restarted")
			}
			Expect(after.pods).To(HaveLen(len(before.pods)+len(grown)),
				"each resource that has grown has one pod more, and no other has")
			for child, generation := range before.children {
				Expect(after.children).To(HaveKeyWithValue(child, generation+int64(grown[child])),
					"%s was changed without cause", child)
			}
			Expect(after.children).To(HaveLen(len(before.children)))
			for _, k := range added {
				Eventually(isEstablished).WithContext(ctx).WithArguments(k.CRD()).Should(BeTrue(), "the upgrade brings %s", k.CRD())
				object := k.Make(namespace, "new", 1)
				create(ctx, object)
				awaitSettled(ctx, k, object)
				k.serve(ctx, object)
			}
			measure("upgrade from %s to %s, approval %s, %d resources grew, %d other changes: a change waited %.1f s at most "+
				"(bar: 10 s)",
				last, tree, approval, len(grown), touched-len(grown), gap.Seconds())
		},
		Entry("automatically", operatorsv1alpha1.ApprovalAutomatic, SpecTimeout(4*patience)),
		Entry("with an administrator's approval", operatorsv1alpha1.ApprovalManual, SpecTimeout(4*patience)),
	)
})

// growing is how many of some kinds keep pods running, and can be told to keep more.
func growing(kinds []kind) int {
	count := 0
	for _, k := range kinds {
		if k.Deploys {
			count++
		}
	}
	return count
}

// isEstablished tells whether the API server serves a definition.
func isEstablished(ctx context.Context, definition string) (bool, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	err := kube.Get(ctx, client.ObjectKey{Name: definition}, &crd)
	return apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established), err
}

// makeFleet makes resources of some kinds and waits until they are carried out.
func makeFleet(ctx context.Context, namespace string, kinds []kind) [][]client.Object {
	GinkgoHelper()
	objects := make([][]client.Object, len(kinds))
	for k, kind := range kinds {
		for n := range fleet {
			object := kind.Make(namespace, fmt.Sprintf("%c%02d", kind.Name[0]|0x20, n), 1)
			create(ctx, object)
			objects[k] = append(objects[k], object)
		}
	}
	for k, kind := range kinds {
		awaitSettled(ctx, kind, objects[k]...)
	}
	return objects
}

// settling is how long what serves keeps its image under a new leader; see --image-delay in the README.
const settling = 2 * time.Minute

// awaitSettledLeader waits until an operator of the tree leads that has the settings of the Subscription, for so long
// that it has done with its operands whatever it does.
func awaitSettledLeader(ctx context.Context) {
	GinkgoHelper()
	By("waiting until the new operator has led for a while")
	Eventually(func(g Gomega, ctx context.Context) {
		name, since := leader(ctx)
		var pod corev1.Pod
		g.Expect(kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, &pod)).To(Succeed())
		g.Expect(pod.Spec.Containers[0].Image).To(Equal(image("")))
		g.Expect(pod.Spec.Containers[0].Env).To(ContainElements(operandImages()))
		g.Expect(pod.DeletionTimestamp).To(BeNil())
		g.Expect(time.Since(since)).To(BeNumerically(">", settling+5*time.Second))
	}).WithContext(ctx).WithTimeout(2 * patience).WithPolling(time.Second).Should(Succeed())
}

// world is what an upgrade must not disturb.
type world struct {
	pods     map[types.UID]int32 // restarts
	children map[string]int64    // generation, by kind, name and UID
}

func look(ctx context.Context, namespace string) world {
	GinkgoHelper()
	w := world{pods: map[types.UID]int32{}, children: map[string]int64{}}
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	for _, pod := range pods.Items {
		var restarts int32
		for _, container := range pod.Status.ContainerStatuses {
			restarts += container.RestartCount
		}
		w.pods[pod.UID] = restarts
	}
	all, err := children(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	for _, child := range all {
		if child.Name != "beacon" {
			w.children[childKey(child.Kind, &child)] = child.Generation
		}
	}
	return w
}

func childKey(kind string, object client.Object) string {
	return fmt.Sprintf("%s %s %s", kind, object.GetName(), object.GetUID())
}

// changing changes the resources of a fleet all the while.
type changing struct {
	end     context.CancelFunc
	done    chan error
	grown   map[string]int // by the key of the Deployment, to how many pods more
	touched int
}

// startChanging writes to one resource after the other, round and round: an annotation, which is no change for the
// operator, and in each round to one more of every other one that it shall have one pod more, if it has any.
func startChanging(ctx context.Context, kinds []kind, objects [][]client.Object) *changing {
	c := &changing{done: make(chan error, 1), grown: map[string]int{}}
	// It outlives the node of the suite that has started it, and not the spec.
	loop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(cancel)
	var last context.Context
	last, c.end = context.WithCancel(loop)
	go func() { c.done <- c.loop(loop, last, kinds, objects) }()
	return c
}

func (c *changing) loop(ctx, last context.Context, kinds []kind, objects [][]client.Object) error {
	for round, ended := 0, false; !ended; round++ {
		// In the last round all grow that have not.
		ended = last.Err() != nil
		for n := range fleet {
			grows := n%2 == 0 && (n/2 == round || ended && n/2 > round)
			for k, kind := range kinds {
				if err := c.change(ctx, kind, objects[k][n], round, grows && kind.Deploys); err != nil {
					return err
				}
				if last.Err() == nil {
					time.Sleep(200 * time.Millisecond) // changes all the while, not all at once
				}
			}
		}
	}
	return nil
}

func (c *changing) change(ctx context.Context, k kind, object client.Object, round int, grows bool) error {
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetAnnotations(map[string]string{"e2e/round": fmt.Sprint(round)})
	if grows {
		k.Resize(object, k.Pods(object)+1)
	}
	if err := kube.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	c.touched++
	if !grows {
		return nil
	}
	var deployment appsv1.Deployment
	if err := kube.Get(ctx, client.ObjectKeyFromObject(object), &deployment); err != nil {
		return err
	}
	c.grown[childKey("Deployment", &deployment)] = 1
	return nil
}

// stop ends the changes when each resource that is to grow has grown.
func (c *changing) stop() (grown map[string]int, touched int) {
	GinkgoHelper()
	c.end()
	Expect(<-c.done).To(Succeed())
	return c.grown, c.touched
}
