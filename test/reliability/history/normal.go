package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// revisionAnnotation counts the templates of a Deployment, on it and on their ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// masked are the fields that the server makes, and that differ from run to run. They are all that is left out of a
// comparison.
var masked = [][]string{
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"},
	{"metadata", "managedFields"},
}

// maskedOf are those that Kubernetes' own controllers and the machines write: how often a Deployment was rolled out and
// in which order what happened to it, and how they tell of it. How many pods there are and are available stays.
var maskedOf = map[string][][]string{
	Deployments: {{"metadata", "annotations", revisionAnnotation}, {"status", "conditions"}, {"status", "collisionCount"}},
	ReplicaSets: {{"metadata", "annotations", revisionAnnotation},
		{"metadata", "annotations", "deployment.kubernetes.io/revision-history"}, {"status", "conditions"}},
	Budgets: {{"status"}},
	Pods:    {{"status", "conditions"}},
	Jobs:    {{"status"}},
}

// Normal is a world in a form that is the same for worlds that differ only in what the server makes: object by object,
// as JSON.
type Normal map[string]string

// Symbols are times that have a meaning, by what they are called.
type Symbols map[string]time.Time

var (
	// The operator's hash of the fields that it has applied: the owner's UID is a part of their names.
	hashPattern = regexp.MustCompile(`("memcached-operator.example.com/applied-fields": )"[^"]+"`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// A pod that is named and not there: that could not be made, or is gone. The names of those that are there have been
	// replaced.
	podPattern = regexp.MustCompile(`-(\(template( \d+)? of [a-z0-9.-]+\)|[bcdf-hj-np-tv-z2-9]{5,10})-[bcdf-hj-np-tv-z2-9]{5}\b`)
	uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
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
	maps.Copy(names, templateHashes(world))
	normal := Normal{}
	for key, object := range world {
		if key.Resource == ReplicaSets && isEmpty(object) {
			continue // of an earlier template: whether that was ever rolled out is a matter of time
		}
		text := hashPattern.ReplaceAllString(canonical(key.Resource, object), `$1"(hash)"`)
		text = podPattern.ReplaceAllString(rename(text, names), "-(pod)")
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

// rename replaces names, the longest first: those of pods have those of others in them.
func rename(text string, names map[string]string) string {
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a,
		b string) int {
		return cmp.Or(len(b)-len(a), cmp.Compare(a, b))
	}) {
		text = strings.ReplaceAll(text, name, names[name])
	}
	return text
}

// canonical returns an object as JSON with what is masked left out. The generations that it speaks of are told by how
// many they are behind.
func canonical(resource string, object *unstructured.Unstructured) string {
	object = object.DeepCopy()
	status, _ := object.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, part := range append(conditions[:len(conditions):len(conditions)], status) {
		part, _ := part.(map[string]any)
		if observed, ok := part["observedGeneration"].(int64); ok {
			part["observedGeneration"] = observed - object.GetGeneration()
		}
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
		names[pod] = fmt.Sprintf("%s-(%d)", controllers[pod], counts[controllers[pod]])
	}
	return names
}

// Rename returns a name in which times are called what they mean.
func (s Symbols) Rename(name string) string {
	return withoutTimes(name, s)
}

// templateHashes returns what to call the hash in the names of ReplicaSets and pods, which is another one when a
// ReplicaSet of an earlier Deployment of the same name is still there. Of the ReplicaSets of one name, the oldest comes
// first.
func templateHashes(world World) map[string]string {
	sets := world.Of(ReplicaSets)
	slices.SortStableFunc(sets, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(revision(a), revision(b)))
	})
	names, counts := map[string]string{}, map[string]int{}
	for _, set := range sets {
		controller, hash := metav1.GetControllerOf(set), set.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
		if isEmpty(set) || controller == nil || hash == "" {
			continue
		}
		counts[controller.Name]++
		names[hash] = fmt.Sprintf("(template of %s)", controller.Name)
		if count := counts[controller.Name]; count > 1 {
			names[hash] = fmt.Sprintf("(template %d of %s)", count, controller.Name)
		}
	}
	return names
}

// revision returns which of its Deployment's templates a ReplicaSet is of.
func revision(set *unstructured.Unstructured) int {
	number, _ := strconv.Atoi(set.GetAnnotations()[revisionAnnotation])
	return number
}

// withoutTimes replaces times by what they mean, in the names of Jobs and in schedules too, and all others by the same
// word.
func withoutTimes(text string, symbols Symbols) string {
	for symbol, t := range symbols {
		text = strings.ReplaceAll(text, t.UTC().Format(time.RFC3339), "("+symbol+")")
		text = strings.ReplaceAll(text, "-"+JobSuffix(t), "-("+symbol+")")
		text = strings.ReplaceAll(text, fmt.Sprintf(`"%d * * * *"`, t.Minute()), `"(hourly)"`)
	}
	return timePattern.ReplaceAllString(text, "(time)")
}

// JobSuffix returns how the name of the Job of a time ends: with minutes, or with seconds where a schedule does not
// keep to minutes.
func JobSuffix(t time.Time) string {
	if t.Unix()%60 == 0 {
		return fmt.Sprintf("%08d", t.Unix()/60)
	}
	return fmt.Sprintf("%010d", t.Unix())
}

// mostLines is how many lines of a difference are told.
const mostLines = 12

// Diff tells how a world differs from the one that was expected, in lines that only one of the two has; nothing if it
// does not.
func Diff(expected, actual Normal) string {
	var lines []string
	for _, side := range []struct {
		sign        string
		have, other map[string]bool
	}{{"-", linesOf(expected), linesOf(actual)}, {"+", linesOf(actual), linesOf(expected)}} {
		for _, line := range slices.Sorted(maps.Keys(side.have)) {
			if !side.other[line] {
				lines = append(lines, side.sign+" "+line)
			}
		}
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("and %d lines more", len(lines)-mostLines))
	}
	if len(lines) == 0 && !maps.Equal(expected, actual) {
		return "the same lines in another order"
	}
	return strings.Join(lines, "\n")
}

// linesOf returns the lines of a world, each with the object that it is of.
func linesOf(n Normal) map[string]bool {
	lines := map[string]bool{}
	for key, text := range n {
		for line := range strings.Lines(text) {
			lines[key+": "+strings.TrimSpace(line)] = true
		}
	}
	return lines
}
