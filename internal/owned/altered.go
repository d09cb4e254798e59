package owned

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alterations remembers requests whose answers did not say what was wanted, because a webhook or a policy had changed it on the
// way (an image to be pulled from a mirror, say). To send them again is of no use before what is wanted, the child or the policy
// changes; the last of these does not show, so it is tried again after retryAltered. It is empty on clusters where that does
// not happen, and safe for concurrent use.
type alterations struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]alteration
}

type alteration struct {
	want  string
	child client.Object
	at    time.Time
}

const retryAltered = 10 * time.Minute

// isKnown tells whether this want has been sent for this child, and the child has not changed since.
func (a *alterations) isKnown(key types.NamespacedName, want runtime.ApplyConfiguration, child client.Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.byKey[key]
	return ok && time.Since(known.at) < retryAltered && known.want == textOf(want) && equality.Semantic.DeepEqual(known.child, content(child))
}

// note remembers what was sent and answered.
func (a *alterations) note(key types.NamespacedName, want runtime.ApplyConfiguration, answer client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[types.NamespacedName]alteration{}
	}
	a.byKey[key] = alteration{textOf(want), content(answer), time.Now()}
}

// forget drops what is known of a child.
func (a *alterations) forget(child client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(child)
	if known, ok := a.byKey[key]; ok && known.child.GetUID() == child.GetUID() {
		delete(a.byKey, key)
	}
}

// content returns what an object says, without what changes by itself, its version and its status, and without its kind, which answers
// leave out.
func content(object client.Object) client.Object {
	content := object.DeepCopyObject().(client.Object)
	content.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	content.SetResourceVersion("")
	content.SetManagedFields(nil)
	if status := reflect.ValueOf(content).Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
	return content
}

// textOf returns what a want says as text, to be compared: without what it is addressed to.
func textOf(want runtime.ApplyConfiguration) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		panic(err) // it has been sent
	}
	unstructured.RemoveNestedField(content, "metadata", "uid")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	return fmt.Sprint(content)
}
