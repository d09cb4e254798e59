package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// masked are the fields that the server makes, and that differ from run to run. They are all that is left out of a comparison.
var masked = [][]string{
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "managedFields"},
}

// maskedOf are those that Kubernetes' own controllers and the machines write: how often a Deployment was rolled out and in which
// order what happened to it, and how they tell of it. How many pods there are and are available stays.
var maskedOf = map[string][][]string{
	Deployments: {{"metadata", "generation"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"}, {"status", "conditions"}},
	ReplicaSets: {{"metadata", "generation"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"},
		{"metadata", "annotations", "deployment.kubernetes.io/revision-history"}, {"status", "conditions"}},
	Budgets: {{"metadata", "generation"}, {"status"}},
	Pods:    {{"metadata", "generation"}, {"status", "conditions"}},
	Jobs:    {{"metadata", "generation"}, {"status"}},
}

// Normal is a world in a form that is the same for worlds that differ only in what the server makes: object by object, as JSON.
type Normal map[string]string

// Symbols are times that have a meaning, by what they are called.
type Symbols map[string]time.Time

var (
	// The operator's hash of the fields that it has applied: the owner's UID is a part of their names.
	hashPattern = regexp.MustCompile(`("memcached-operator.example.com/applied-fields": )"[^"]+"`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	uidPattern  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// Normalize returns a namespace's world in normal form. All that has been in the namespace tells whose UID is whose.
func Normalize(namespace string, world World, versions []Version, symbols Symbols) Normal {
	uids := map[string]string{}
	for _, version := range versions {
		uids[string(version.Object.GetUID())] = fmt.Sprintf("(uid of %s)", version.Key)
	}
	for key, object := range world { // after those that are gone
		uids[string(object.GetUID())] = fmt.Sprintf("(uid of %s)", key)
	}
	names := podNames(world)
	normal := Normal{}
	for key, object := range world {
		if key.Resource == ReplicaSets && isEmpty(object) {
			continue // of an earlier template: whether that was ever rolled out is a matter of time
		}
		text := hashPattern.ReplaceAllString(canonical(key.Resource, object), `$1"(hash)"`)
		for name, symbol := range names {
			text = strings.ReplaceAll(text, name, symbol)
		}
		text = uidPattern.ReplaceAllStringFunc(text, func(uid string) string {
			if symbol, ok := uids[uid]; ok {
				return rename(symbol, names)
			}
			return "(uid of nothing)"
		})
		text = strings.ReplaceAll(text, namespace, "(namespace)")
		text = withoutTimes(text, symbols)
		normal[withoutTimes(rename(key.String(), names), symbols)] = text
	}
	return normal
}

func rename(text string, names map[string]string) string {
	for name, symbol := range names {
		text = strings.ReplaceAll(text, name, symbol)
	}
	return text
}

// canonical returns an object as JSON with what is masked left out.
func canonical(resource string, object *unstructured.Unstructured) string {
	object = object.DeepCopy()
	observed, hasObserved, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if hasObserved {
		_ = unstructured.SetNestedField(object.Object, observed-object.GetGeneration(), "status", "observedGeneration")
	}
	for _, path := range slices.Concat(masked, maskedOf[resource]) {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	text, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		panic(err) // it came as JSON
	}
	return string(text)
}

func isEmpty(set *unstructured.Unstructured) bool {
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	total, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
	return replicas == 0 && total == 0
}

// podNames returns what to call each pod, whose own name is made by chance: the name of its controller, and a number.
func podNames(world World) map[string]string {
	var pods []string
	controllers := map[string]string{}
	for key, object := range world {
		if controller := metav1.GetControllerOf(object); key.Resource == Pods && controller != nil {
			pods = append(pods, key.Name)
			controllers[key.Name] = controller.Name
		}
	}
	slices.Sort(pods)
	names, counts := map[string]string{}, map[string]int{}
	for _, pod := range pods {
		counts[controllers[pod]]++
		names[pod] = fmt.Sprintf("(pod %d of %s)", counts[controllers[pod]], controllers[pod])
	}
	return names
}

// Rename returns a name in which times are called what they mean.
func (s Symbols) Rename(name string) string {
	return withoutTimes(name, s)
}

// withoutTimes replaces times by what they mean, in the names of Jobs too, and all others by the same word.
func withoutTimes(text string, symbols Symbols) string {
	for symbol, t := range symbols {
		text = strings.ReplaceAll(text, t.UTC().Format(time.RFC3339), "("+symbol+")")
		text = strings.ReplaceAll(text, fmt.Sprintf("-%08d", t.Unix()/60), "-("+symbol+")")
	}
	return timePattern.ReplaceAllString(text, "(time)")
}

// Diff tells how a world differs from the one that was expected; nothing if it does not.
func Diff(expected, actual Normal) string {
	lines := func(n Normal) []string {
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(n)) {
			for line := range strings.Lines(n[key]) {
				lines = append(lines, key+": "+strings.TrimRight(line, "\n"))
			}
		}
		return lines
	}
	if maps.Equal(expected, actual) {
		return ""
	}
	return cmp.Diff(lines(expected), lines(actual))
}
