// Command floor makes Foos true with the fewest requests that can do it: one that creates the Deployment and one that tells when it
// is available. It decides nothing, keeps nothing, repairs nothing, and tells nobody what is wrong. What it achieves is the most
// that any operator could on this machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/test/bench/foos/least"
	"github.com/example/memcached-operator/test/bench/measure"
)

// workers is how many requests are under way at most.
const workers = 16

func main() {
	flags := flag.NewFlagSet("floor", flag.ExitOnError) // controller-runtime has a flag of this name among those of all programs
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
	work := make(chan func() error, 200_000) // more than there are Foos: a watch must not wait
	for range workers {
		go func() {
			for do := range work {
				if err := do(); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "floor:", err)
				}
			}
		}()
	}
	// Where a watch has to begin again, everything is told of once more.
	made, told := map[types.UID]bool{}, map[types.UID]bool{}
	go measure.Follow(ctx, c, &samplev1alpha1.FooList{}, func(event watch.EventType, object client.Object) {
		if foo := object.(*samplev1alpha1.Foo); event == watch.Added && foo.Status.AvailableReplicas == 0 && !made[foo.UID] {
			made[foo.UID] = true
			work <- func() error { return c.Create(ctx, least.Deployment(foo)) }
		}
	})
	go measure.Follow(ctx, c, &appsv1.DeploymentList{}, func(event watch.EventType, object client.Object) {
		d := object.(*appsv1.Deployment)
		owner := metav1.GetControllerOf(d)
		if event != watch.Deleted && owner != nil && d.Status.AvailableReplicas == *d.Spec.Replicas && !told[d.UID] {
			told[d.UID] = true
			work <- func() error { return tell(ctx, c, d.Namespace, owner.Name, d.Status.AvailableReplicas) }
		}
	})
	fmt.Println("begun")
	<-ctx.Done()
	return nil
}

// tell writes what a Deployment has into the status of its Foo.
func tell(ctx context.Context, c client.Client, namespace, name string, available int32) error {
	foo := &samplev1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return c.Status().Patch(ctx, foo, least.Status(available))
}
