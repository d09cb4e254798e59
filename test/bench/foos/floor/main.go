// Command floor does for Foos what no controller can leave out: it creates a Deployment, and writes the status once. No
// cache, no queue, no retries: the latency of a Foo cannot be lower on the same machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/measure"
)

func main() {
	flag.Parse()
	config, err := config.GetConfig() // its package defines the flag --kubeconfig
	if err != nil {
		log.Fatal(err)
	}
	config.QPS = -1
	if err := samplev1alpha1.AddToScheme(clientgoscheme.Scheme); err != nil {
		log.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	go measure.Follow(ctx, c, &appsv1.DeploymentList{}, func(event watch.EventType, object client.Object) {
		if d := object.(*appsv1.Deployment); event != watch.Deleted && d.Status.AvailableReplicas > 0 {
			go report(ctx, c, d)
		}
	})
	log.Print("Started workers") // the benchmark waits for that
	measure.Follow(ctx, c, &samplev1alpha1.FooList{}, func(event watch.EventType, object client.Object) {
		if event == watch.Added {
			go deploy(ctx, c, object.(*samplev1alpha1.Foo))
		}
	})
}

// deploy creates the Deployment of a Foo.
func deploy(ctx context.Context, c client.Client, foo *samplev1alpha1.Foo) {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	err := c.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: samplev1alpha1.GroupVersion.String(), Kind: "Foo",
				Name: foo.Name, UID: foo.UID, Controller: ptr.To(true)}}},
		Spec: appsv1.DeploymentSpec{Replicas: foo.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx"}}}}},
	})
	if client.IgnoreAlreadyExists(err) != nil {
		log.Print(err)
	}
}

// report writes the status of the Foo of a Deployment.
func report(ctx context.Context, c client.Client, d *appsv1.Deployment) {
	foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.OwnerReferences[0].Name}}
	status := fmt.Appendf(nil, `{"status":{"replicas":%d,"availableReplicas":%d}}`, d.Status.Replicas,
		d.Status.AvailableReplicas)
	if err := c.Status().Patch(ctx, foo, client.RawPatch(types.MergePatchType, status)); err != nil {
		log.Print(err)
	}
}
