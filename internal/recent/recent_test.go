package recent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func object(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version}}
}

func TestNewest(t *testing.T) {
	key := client.ObjectKeyFromObject(object(""))
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
		{name: "the cache has not seen the object", remembered: "7", want: "7"},
		{name: "the cache is behind", remembered: "7", cached: "5", want: "7"},
		{name: "the cache is behind by a digit", remembered: "10", cached: "9", want: "10"},
		{name: "the cache has caught up", remembered: "7", cached: "7", want: "7"},
		{name: "the cache is ahead", remembered: "7", cached: "8", want: "8"},
		{name: "the object is known to be deleted", remembered: "7", forget: true},
		{name: "the answer is old and the object not in the cache", remembered: "7", late: true},
		{name: "the answer is old and the cache is behind", remembered: "7", cached: "5", late: true, want: "5"},
		{name: "versions are not ordered", remembered: "x", cached: "5", want: "5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var objects Objects[*corev1.ConfigMap]
			if test.remembered != "" {
				objects.Remember(object(test.remembered))
			}
			if test.late {
				objects.byKey[key] = answer[*corev1.ConfigMap]{object(test.remembered), time.Now().Add(-2 * keep)}
			}
			if test.forget {
				objects.Forget(object(test.remembered))
			}
			newest, found := objects.Newest(key, object(test.cached), test.cached != "")
			if found != (test.want != "") || found && newest.ResourceVersion != test.want {
				t.Errorf("got %q, %t; want %q", newest.ResourceVersion, found, test.want)
			}
		})
	}
}

func TestAnAnswerThatComesAfterTheEndIsNotBelieved(t *testing.T) {
	var objects Objects[*corev1.ConfigMap]
	ended := object("7")
	ended.UID = "1"
	objects.Forget(ended)
	objects.Remember(ended)
	if _, found := objects.Newest(client.ObjectKeyFromObject(ended), nil, false); found {
		t.Error("it is believed")
	}
	next := object("9")
	next.UID = "2"
	objects.Remember(next)
	objects.Forget(ended) // the watch may tell of it late
	if newest, found := objects.Newest(client.ObjectKeyFromObject(next), nil, false); !found || newest.UID != "2" {
		t.Error("the next object of that name is not")
	}
}

func TestNothingIsKeptAtRest(t *testing.T) {
	var objects Objects[*corev1.ConfigMap]
	objects.Remember(object("7"))
	objects.Newest(types.NamespacedName{Namespace: "ns", Name: "a"}, object("7"), true)
	if len(objects.byKey) != 0 {
		t.Errorf("kept after the cache has caught up: %v", objects.byKey)
	}

	forgotten := object("8")
	forgotten.Name = "nobody-asks-again"
	objects.Remember(forgotten)
	for key, answer := range objects.byKey {
		answer.at = answer.at.Add(-2 * keep)
		objects.byKey[key] = answer
	}
	objects.gone = map[types.UID]time.Time{"ended long ago": time.Now().Add(-2 * keep)}
	objects.swept = time.Time{}
	objects.Forget(object("9")) // as the watch has it on a cluster in which we write nothing
	if len(objects.byKey) != 0 || len(objects.gone) != 1 {
		t.Errorf("kept although nobody asks: %v, %v", objects.byKey, objects.gone)
	}
}
