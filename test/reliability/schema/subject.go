package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// objectName is the name of every tested resource.
const objectName = "it"

// subject is one tested resource, in its own namespace.
type subject struct {
	*Namespace
	kind *kind
	// version is the resource version of the test's last write. Observations count only once the watch has shown it.
	version string
	// dueTimes are the scheduled times that the current class has made due; last is the latest one of all classes. They
	// are all in the past.
	dueTimes []time.Time
	last     time.Time
	// begun is the position in the audit log before the subject was created.
	begun testenv.Mark
}

// create creates a resource in a namespace with a quota for pods; 0 is no quota.
func (c *Cluster) create(ctx context.Context, k *kind, spec map[string]any, pods int) (*subject, error) {
	namespace, err := c.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	s := &subject{Namespace: namespace, kind: k, begun: c.ControlPlane.Audit.Now(),
		last: time.Now().UTC().Truncate(time.Second).Add(-period / 2)}
	s.Normalize = s.normal
	if pods > 0 {
		if err := s.limitPods(ctx, pods); err != nil {
			return nil, err
		}
	}
	object := s.empty()
	object.Object["spec"] = runtime.DeepCopyJSON(spec)
	if err := c.ControlPlane.Client.Create(ctx, object, client.FieldValidation("Strict")); err != nil {
		return nil, err
	}
	s.wrote(object)
	return s, nil
}

// limitPods creates a quota, and waits until Kubernetes has computed its usage: until then it rejects every pod.
func (s *subject) limitPods(ctx context.Context, pods int) error {
	quota := &corev1.ResourceQuota{}
	quota.Namespace, quota.Name = s.Name, "room"
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI)}
	if err := s.Cluster.ControlPlane.Client.Create(ctx, quota); err != nil {
		return err
	}
	return s.Cluster.Until(ctx, func() error {
		err := s.Cluster.ControlPlane.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if err == nil && quota.Status.Used == nil {
			err = errors.New("the quota is not in force")
		}
		return err
	})
}

func (s *subject) wrote(object *unstructured.Unstructured) {
	s.version, s.known = object.GetResourceVersion(), nil
}

func (s *subject) empty() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": s.kind.APIVersion(), "kind": s.kind.Name,
		"metadata": map[string]any{"name": objectName, "namespace": s.Name}}}
}

// change replaces the spec.
func (s *subject) change(ctx context.Context, spec map[string]any) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		return err
	}
	object := s.empty()
	raw := client.RawPatch(types.JSONPatchType, patch)
	if err := s.Cluster.ControlPlane.Client.Patch(ctx, object, raw, client.FieldValidation("Strict")); err != nil {
		return err
	}
	s.wrote(object)
	return nil
}

func (s *subject) key() history.Key { return history.Key{Resource: s.kind.resource, Name: objectName} }

// answered returns the resource and the state of its namespace, as the watch has shown them. It fails until the watch
// has shown the test's last write and a status for the current generation.
func (s *subject) answered() (*unstructured.Unstructured, history.State, error) {
	state := s.Cluster.recorder.State(s.Name)
	object := state[s.key()]
	if object == nil {
		return nil, nil, errors.New("the watch has not shown it")
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), s.version)
	if err != nil || order < 0 {
		return nil, nil, errors.New("the watch is behind")
	}
	if at(object.Object, "status", "observedGeneration") != object.GetGeneration() {
		return nil, nil, fmt.Errorf("generation %d is not observed", object.GetGeneration())
	}
	return object, state, nil
}

func (s *subject) isAnswered() error {
	_, _, err := s.answered()
	return err
}

// settle waits until the resource has settled: its rollout is complete, or stuck at the quota, and a CronJob's status
// counts all its Jobs, none of which finishes. A stuck rollout takes longer, because progress updates are rate-limited.
func (s *subject) settle(ctx context.Context) (history.Normal, error) {
	return s.Settle(ctx, func(normal history.Normal) (time.Duration, error) {
		object, state, err := s.answered()
		if err != nil {
			return 0, err
		}
		own := normal[s.key().String()]
		if strings.Contains(own, "RolloutStuck") {
			return 5 * time.Second, nil
		}
		active, _, _ := unstructured.NestedInt64(object.Object, "status", "activeJobs")
		if strings.Contains(own, "RollingOut") || active != int64(len(state.Of(history.Jobs))) {
			err = errors.New("a rollout is not complete, or a Job is not counted")
		}
		return 0, err
	})
}

// delete deletes the resource; the garbage collector deletes its children.
func (s *subject) delete(ctx context.Context) error {
	s.Cluster.recorder.Forget(s.Name)
	return s.Cluster.ControlPlane.Client.Delete(ctx, s.empty())
}

// conditionOf returns the status, reason and message of a condition.
func conditionOf(object *unstructured.Unstructured, condition string) (status, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == condition {
			return fmt.Sprint(c["status"]), fmt.Sprint(c["reason"]), fmt.Sprint(c["message"])
		}
	}
	return "", "", ""
}
