package foo

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "github.com/example/memcached-operator/api/samplecontroller/v1alpha1"
	"github.com/example/memcached-operator/internal/golden"
	"github.com/example/memcached-operator/internal/operand"
)

func TestGoldenDeployment(t *testing.T) {
	for _, test := range []struct {
		name, file string
		platform   operand.Platform
		golden     string
	}{
		{"as little as there can be", "minimal", operand.Platform{}, "minimal"},
		{"all there is", "full", operand.Platform{}, "full"},
		{"where the cluster assigns users", "minimal", operand.Platform{AssignsUsers: true}, "openshift"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var foo samplev1alpha1.Foo
			golden.Read(t, test.file, &foo)
			golden.Check(t, test.golden, deployment(&foo, foo.Spec.DeploymentName, nil, test.platform, "nginx:latest"))
		})
	}
}

func TestDeploymentReplicas(t *testing.T) {
	seen := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](5)}}
	for _, test := range []struct {
		name     string
		replicas *int32
		seen     *appsv1.Deployment
		want     int32
	}{
		{"managed, no Deployment yet", ptr.To[int32](3), nil, 3},
		{"managed, scaled by another client", ptr.To[int32](3), seen, 3},
		{"managed, none", ptr.To[int32](0), seen, 0},
		{"not managed, no Deployment yet", nil, nil, 1},
		{"not managed, scaled by another client", nil, seen, 5},
		{"not managed, an uncontrolled Deployment, whose spec the cache does not keep", nil, &appsv1.Deployment{}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			foo := &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: test.replicas}}
			got := deployment(foo, foo.Spec.DeploymentName, test.seen, operand.Platform{}, "nginx")
			if *got.Spec.Replicas != test.want {
				t.Errorf("replicas: got %d, want %d", *got.Spec.Replicas, test.want)
			}
		})
	}
}
