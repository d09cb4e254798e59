package child

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alterations remembers children that the API server has stored otherwise than they were applied, because a webhook or
// policy altered them (for example, to pull images from a mirror). Applying them again has no effect before the
// configuration, the child or the policy changes. Changes of a policy cannot be observed, so a child is applied again
// from time to time. Without such policies, the record is empty. It is safe for concurrent use.
type alterations struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	byUID map[types.UID]alteration
}

type alteration struct {
	want  map[string]any
	child client.Object
	at    time.Time
}

// All altered children of a controller together are applied again about once a second: a few of them are restored soon
// after the policy is removed, and many of them cost no more requests than a few.
const (
	retryPerChild = time.Second
	shortestRetry = 10 * time.Second
	longestRetry  = 10 * time.Minute
)

// retryAfter returns how long to wait before applying want to a child again; 0 if the same attempt is not on record.
func (a *alterations) retryAfter(want runtime.ApplyConfiguration, child client.Object) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.byUID[child.GetUID()]
	if !ok || !equality.Semantic.DeepEqual(known.want, contentOf(want)) ||
		!equality.Semantic.DeepEqual(known.child, withoutStatus(child)) {
		return 0
	}
	return max(0, a.interval()-a.clock.Since(known.at))
}

// note records what was applied and what the API server has stored, and returns how long to wait before a retry.
func (a *alterations) note(want runtime.ApplyConfiguration, answer client.Object) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byUID == nil {
		a.byUID = map[types.UID]alteration{}
	}
	a.byUID[answer.GetUID()] = alteration{contentOf(want), withoutStatus(answer), a.clock.Now()}
	return a.interval()
}

func (a *alterations) interval() time.Duration {
	return min(max(time.Duration(len(a.byUID))*retryPerChild, shortestRetry), longestRetry)
}

// forget drops the record of a child.
func (a *alterations) forget(child client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byUID, child.GetUID())
}

// withoutStatus returns an object without its version and status, which others change, and without its kind, which
// responses omit.
func withoutStatus(object client.Object) client.Object {
	content := object.DeepCopyObject().(client.Object)
	content.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	content.SetResourceVersion("")
	content.SetManagedFields(nil)
	if status := reflect.ValueOf(content).Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
	return content
}

// contentOf returns the fields of a configuration, without those that address one version of an object.
func contentOf(want runtime.ApplyConfiguration) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return map[string]any{"error": err.Error()} // it cannot be sent either
	}
	unstructured.RemoveNestedField(content, "metadata", "uid")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	return content
}
