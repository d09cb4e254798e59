package recent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func object(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}}
}

func TestNewest(t *testing.T) {
	for _, test := range []struct {
		name       string
		remembered string // "" for nothing
		cached     string // "" for nothing
		forget     bool
		late       bool
		want       string // "" for nothing
	}{
		{name: "neither"},
		{name: "the cache alone", cached: "5", want: "5"},
		{name: "the cache does not have the object", remembered: "7", want: "7"},
		{name: "the cache is behind", remembered: "7", cached: "5", want: "7"},
		{name: "the cache is behind by a digit", remembered: "10", cached: "9", want: "10"},
		{name: "the cache has caught up", remembered: "7", cached: "7", want: "7"},
		{name: "the cache is ahead", remembered: "7", cached: "8", want: "8"},
		{name: "the object is known to be deleted", remembered: "7", forget: true},
		{name: "the response is old and the object not in the cache", remembered: "7", late: true},
		{name: "the response is old and the cache is behind", remembered: "7", cached: "5", late: true, want: "5"},
		{name: "versions are not ordered", remembered: "x", cached: "5", want: "5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			objects := New(clock)
			if test.remembered != "" {
				objects.Remember(object(test.remembered))
			}
			if test.late {
				clock.SetTime(clock.Now().Add(2 * keep))
			}
			if test.forget {
				objects.Forget(object(test.remembered))
			}
			newest, found := objects.Newest(object(test.cached), test.cached != "")
			if found != (test.want != "") || found && newest.GetResourceVersion() != test.want {
				t.Errorf("got %q, %t; want %q", newest.GetResourceVersion(), found, test.want)
			}
		})
	}
}

func TestExpiryEndsThePreference(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	objects := New(clock)
	if wait := objects.Expiry(object("7")); wait != 0 {
		t.Errorf("nothing is remembered, but the expiry is %s", wait)
	}
	objects.Remember(object("7"))
	clock.SetTime(clock.Now().Add(keep / 2))
	wait := objects.Expiry(object("7"))
	if wait < keep/2 || wait > keep {
		t.Errorf("the expiry is %s after half of %s", wait, keep)
	}
	clock.SetTime(clock.Now().Add(wait))
	if _, found := objects.Newest(object(""), false); found {
		t.Error("the response is preferred for longer than its expiry")
	}
}

func TestResponseAfterDeletionIsIgnored(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	objects := New(clock)
	deleted := object("7")
	deleted.UID = "1"
	objects.Forget(deleted)
	objects.Remember(deleted)
	if _, found := objects.Newest(Named(deleted), false); found {
		t.Error("a deleted object counts as existing")
	}
	next := object("9")
	next.UID = "2"
	objects.Remember(next)
	objects.Forget(deleted) // the watch may show it late
	if newest, found := objects.Newest(Named(next), false); !found || newest.GetUID() != "2" {
		t.Error("the next object of that name does not count as existing")
	}
}

func TestNothingIsKeptWhenSettled(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	objects := New(clock)
	objects.Remember(object("7"))
	objects.Newest(object("7"), true)
	if len(objects.byKey) != 0 {
		t.Errorf("kept after the cache has caught up: %v", objects.byKey)
	}

	forgotten := object("8")
	forgotten.Name = "not-read-again"
	objects.Remember(forgotten)
	objects.Forget(object("8"))
	clock.SetTime(clock.Now().Add(2 * keep))
	objects.Forget(object("9")) // a deletion that the watch shows, without any write
	if len(objects.byKey) != 0 || len(objects.deleted) != 1 {
		t.Errorf("kept after it has expired: %v, %v", objects.byKey, objects.deleted)
	}
}
