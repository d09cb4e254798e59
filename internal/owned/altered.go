package owned

import (
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// alterations remembers requests whose answers did not say what was wanted, because a webhook or a policy had changed it on the
// way (an image to be pulled from a mirror, say). To send them again is of no use before either what is wanted or the child
// changes. It is empty on clusters where that does not happen, and safe for concurrent use.
type alterations struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]alteration
}

type alteration struct {
	want  string
	child client.Object
}

// isKnown tells whether this want has been sent for this child, and the child has not changed since.
func (a *alterations) isKnown(key types.NamespacedName, want string, child client.Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.byKey[key]
	return ok && known.want == want && equality.Semantic.DeepEqual(known.child, content(child))
}

// note remembers what was sent and answered.
func (a *alterations) note(key types.NamespacedName, want string, answer client.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[types.NamespacedName]alteration{}
	}
	a.byKey[key] = alteration{want, content(answer)}
}

// forget drops what is known of a child.
func (a *alterations) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byKey, key)
}

// content returns what an object says, without what changes by itself: its version and its status.
func content(object client.Object) client.Object {
	content := object.DeepCopyObject().(client.Object)
	content.SetResourceVersion("")
	content.SetManagedFields(nil)
	if status := reflect.ValueOf(content).Elem().FieldByName("Status"); status.IsValid() {
		status.SetZero()
	}
	return content
}

// textOf returns a want as text, to be compared. It is made before the want is addressed to one object.
func textOf(want runtime.ApplyConfiguration) (string, error) {
	text, err := json.Marshal(want)
	return string(text), err
}
