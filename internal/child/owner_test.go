package child

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// The index finds what IsControlled takes for an owner's.
func TestOwnersFindWhatIsTheirs(t *testing.T) {
	const uid, alike, other = "e206e40f-acc0-4b10-b7fe-659f572cf04c", "e2076d1b-4dbb-4b07-9c55-3f1f2e4f3a1f",
		"116a2c60-33a4-4ec1-b2c1-df16a4c1c1a4"
	for _, test := range []struct {
		name                  string
		controller            types.UID
		annotation            string
		isControlled, isFound bool
	}{
		{"controlled by it", uid, "", true, true},
		{"controlled by one whose UID begins alike", alike, "", false, true},
		{"controlled by another one, and once its own", other, uid, false, false},
		{"without a controller, once its own", "", uid, true, true},
		{"without a controller, once another one's", "", other, false, false},
		{"nobody's", "", "", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			owner, child := &appsv1.Deployment{}, &appsv1.Deployment{}
			owner.UID = uid
			if test.controller != "" {
				child.OwnerReferences = []metav1.OwnerReference{{UID: test.controller, Controller: ptr.To(true)}}
			}
			if test.annotation != "" {
				child.Annotations = map[string]string{OwnerAnnotation: test.annotation}
			}

			isControlled, isFound := IsControlled(child, owner), slices.Contains(IndexOwner(child), OwnerKey(owner))
			if isControlled != test.isControlled || isFound != test.isFound {
				t.Errorf("ours: %t, found: %t", isControlled, isFound)
			}
		})
	}
}

func TestShortUIDs(t *testing.T) {
	if prefix("ab") != "ab" {
		t.Error("a UID of two characters begins with itself")
	}
}
