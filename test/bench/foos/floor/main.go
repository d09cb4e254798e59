// Command floor reconciles Foos with the fewest requests possible: one creates the Deployment, and one reports its
// availability. It has no caches, repairs nothing and reports no errors. Its rate is the highest that this machine
// allows.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
)

// workers is the largest number of concurrent requests.
const workers = 16

func main() {
	flags := flag.NewFlagSet("floor", flag.ExitOnError) // controller-runtime registers this flag for all programs
	kubeconfig := flags.String("kubeconfig", "", "the kubeconfig to use")
	_ = flags.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := clientgoscheme.Scheme
	if err := samplev1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	work := make(chan func() error, 200_000) // more than there are Foos, as a watch must not wait
	for range workers {
		go func() {
			for do := range work {
				if err := do(); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "floor:", err)
				}
			}
		}()
	}
	// A watch that starts again delivers everything once more.
	created, reported := map[types.UID]bool{}, map[types.UID]bool{}
	go measure.Follow(ctx, c, &samplev1alpha1.FooList{}, func(event watch.EventType, object client.Object) {
		if foo := object.(*samplev1alpha1.Foo); event == watch.Added && foo.Status.AvailableReplicas == 0 &&
			!created[foo.UID] {
			created[foo.UID] = true
			work <- func() error { return c.Create(ctx, deployment(foo)) }
		}
	})
	go measure.Follow(ctx, c, &appsv1.DeploymentList{}, func(event watch.EventType, object client.Object) {
		d := object.(*appsv1.Deployment)
		owner := metav1.GetControllerOf(d)
		if event != watch.Deleted && owner != nil && d.Status.AvailableReplicas == *d.Spec.Replicas && !reported[d.UID] {
			reported[d.UID] = true
			work <- func() error { return report(ctx, c, d.Namespace, owner.Name, d.Status.AvailableReplicas) }
		}
	})
	fmt.Println("started")
	<-ctx.Done()
	return nil
}

// deployment returns the smallest Deployment that a Foo can have.
func deployment(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       foo.Namespace,
			Name:            foo.Spec.DeploymentName,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, samplev1alpha1.GroupVersion.WithKind("Foo"))},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}

// report writes the number of available pods into the status of a Foo.
func report(ctx context.Context, c client.Client, namespace, name string, available int32) error {
	foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"status":{"replicas":%[1]d,"availableReplicas":%[1]d}}`, available)
	return c.Status().Patch(ctx, foo, client.RawPatch(types.MergePatchType, patch))
}
