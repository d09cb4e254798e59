package child

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/example/memcached-operator/internal/recent"
)

func TestIsControlled(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "owner"}}
	for _, test := range []struct {
		name       string
		references []metav1.OwnerReference
		annotation string
		want       bool
	}{
		{"no controller", nil, "", false},
		{"the owner controls it", []metav1.OwnerReference{{UID: "owner", Controller: ptr.To(true)}}, "", true},
		{"the owner owns it and does not control it", []metav1.OwnerReference{{UID: "owner"}}, "", false},
		{"another resource controls it", []metav1.OwnerReference{{UID: "other", Controller: ptr.To(true)}}, "", false},
		{"it has lost its reference", nil, "owner", true},
		{"it was created for an earlier owner of the same name", nil, "other", false},
		{"another resource controls it now", []metav1.OwnerReference{{UID: "other", Controller: ptr.To(true)}},
			"owner", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.references,
				Annotations: map[string]string{OwnerAnnotation: test.annotation}}}
			if got := IsControlled(child, owner); got != test.want {
				t.Errorf("IsControlled = %t", got)
			}
		})
	}
}

func TestForgetDeleted(t *testing.T) {
	children := New(nil, nil, clock.RealClock{})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "it", ResourceVersion: "7"}}
	children.recent.Remember(service)
	if !children.ForgetDeleted().Delete(event.DeleteEvent{Object: service}) {
		t.Error("the predicate drops the deletion of a child")
	}
	if _, found := children.recent.Newest(recent.Named(service), false); found {
		t.Error("a child still counts as existing after the watch has shown its deletion")
	}
}

func TestToRetry(t *testing.T) {
	other, notControlled := errors.New("other"),
		fmt.Errorf("applying: %w", &NotControlledError{Kind: "Service", Name: "it"})
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"no error", nil, ""},
		{"an uncontrolled object", notControlled, ""},
		{"another error", other, "other"},
		{"both", errors.Join(notControlled, other), "other"},
		{"nested", errors.Join(errors.Join(other, notControlled), notControlled), "other"},
		{"uncontrolled ones only", errors.Join(notControlled, errors.Join(notControlled)), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := ToRetry(test.err); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestIsRefusal(t *testing.T) {
	resource := schema.GroupResource{Resource: "jobs"}
	exists, forbidden := apierrors.NewAlreadyExists(resource, "a"), apierrors.NewForbidden(resource, "a", nil)
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                      {nil, false},
		"a conflict":                {exists, false},
		"a refusal":                 {forbidden, true},
		"a wrapped refusal":         {fmt.Errorf("creating: %w", forbidden), true},
		"a refusal after others":    {fmt.Errorf("creating: %w", errors.Join(exists, forbidden)), true},
		"several without a refusal": {fmt.Errorf("creating: %w", errors.Join(exists, errors.New("timeout"))), false},
	} {
		if got := IsRefusal(test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestIsPredecessor(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "it", UID: "2"}}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "K"}
	earlier := metav1.OwnerReference{APIVersion: "example.com/v1beta1", Kind: "K", Name: "it", UID: "1"}
	for _, test := range []struct {
		name   string
		change func(*metav1.OwnerReference)
		want   bool
	}{
		{"an earlier resource of the same name", func(*metav1.OwnerReference) {}, true},
		{"the resource itself", func(r *metav1.OwnerReference) { r.UID = "2" }, false},
		{"another name", func(r *metav1.OwnerReference) { r.Name = "other" }, false},
		{"another kind", func(r *metav1.OwnerReference) { r.Kind = "L" }, false},
		{"another group", func(r *metav1.OwnerReference) { r.APIVersion = "v1" }, false},
	} {
		controller := earlier
		test.change(&controller)
		if got := IsPredecessor(&controller, owner, kind); got != test.want {
			t.Errorf("%s: IsPredecessor = %t", test.name, got)
		}
	}
	if IsPredecessor(nil, owner, kind) {
		t.Error("without a controller: IsPredecessor = true")
	}
}

// The more children a webhook alters, the less often each of them is applied again.
func TestAlteredChildrenAreRetried(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	altered := alterations{clock: clock}
	want := corev1ac.ConfigMap("it", "ns").WithData(map[string]string{"a": "b"})
	answer := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "0", ResourceVersion: "7"},
		Data: map[string]string{"a": "other"}}
	if after := altered.retryAfter(want, answer); after != 0 {
		t.Errorf("an unknown child is retried after %s", after)
	}
	if after := altered.note(want, answer); after != shortestRetry {
		t.Errorf("one child is retried after %s", after)
	}
	answer = answer.DeepCopy()
	answer.ResourceVersion = "8" // a status was written
	clock.SetTime(clock.Now().Add(shortestRetry - time.Second))
	if after := altered.retryAfter(want, answer); after != time.Second {
		t.Errorf("an altered child is retried after %s", after)
	}
	if after := altered.retryAfter(corev1ac.ConfigMap("it", "ns").WithData(map[string]string{"a": "c"}),
		answer); after != 0 {
		t.Errorf("another configuration waits for %s", after)
	}
	changed := answer.DeepCopy()
	changed.Data["a"] = "third"
	if after := altered.retryAfter(want, changed); after != 0 {
		t.Errorf("a child that was changed waits for %s", after)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if after := altered.retryAfter(want, answer); after != 0 {
		t.Errorf("once the interval has passed, the retry waits for %s", after)
	}
	for i := range 60 {
		other := answer.DeepCopy()
		other.UID = types.UID(fmt.Sprint(i))
		if after := altered.note(want, other); i == 59 && after != time.Minute {
			t.Errorf("one of 60 is retried after %s", after)
		}
	}
	altered.forget(answer)
	if after := altered.retryAfter(want, answer); after != 0 {
		t.Errorf("a child that is no longer altered waits for %s", after)
	}
}

// The index finds every child that IsControlled reports.
func TestIndexOwnerFindsChildren(t *testing.T) {
	const uid, alike, other = "e206e40f-acc0-4b10-b7fe-659f572cf04c", "e2076d1b-4dbb-4b07-9c55-3f1f2e4f3a1f",
		"116a2c60-33a4-4ec1-b2c1-df16a4c1c1a4"
	for _, test := range []struct {
		name                  string
		controller            types.UID
		annotation            string
		isControlled, isFound bool
	}{
		{"controlled by it", uid, "", true, true},
		{"controlled by one whose UID has the same prefix", alike, "", false, true},
		{"controlled by another one, with its annotation", other, uid, false, false},
		{"without a controller, with its annotation", "", uid, true, true},
		{"without a controller, with another one's annotation", "", other, false, false},
		{"without a controller and annotation", "", "", false, false},
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
				t.Errorf("controlled: %t, found: %t", isControlled, isFound)
			}
		})
	}
}

func TestShortUIDs(t *testing.T) {
	if prefix("ab") != "ab" {
		t.Error("the prefix of a UID of two characters is not the UID")
	}
}

func TestCanRepeat(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "owner"}}
	child := metav1.ObjectMeta{UID: "1", ResourceVersion: "7", Generation: 2,
		OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: ptr.To(true)}}}
	type object = metav1.PartialObjectMetadata
	for name, test := range map[string]struct {
		change      func(found *object)
		isTentative bool
		want        bool
	}{
		"a newer status":                     {func(*object) {}, false, true},
		"a newer status, a tentative pass":   {func(*object) {}, true, false},
		"another number of pods":             {func(found *object) { found.Generation = 3 }, false, false},
		"another object of the same name":    {func(found *object) { found.UID = "2" }, false, false},
		"the observed version":               {func(found *object) { found.ResourceVersion = "7" }, false, false},
		"an object that it does not control": {func(found *object) { found.OwnerReferences = nil }, false, false},
	} {
		found := &object{ObjectMeta: *child.DeepCopy()}
		found.ResourceVersion = "8"
		test.change(found)
		pass := &Pass{Owner: owner, IsTentative: test.isTentative}
		if got := canRepeat(pass, &appsv1.Deployment{ObjectMeta: child}, found); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if canRepeat[appsv1.Deployment](&Pass{Owner: owner}, nil, &object{}) {
		t.Error("nothing was observed")
	}
}
