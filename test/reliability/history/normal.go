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
	"k8s.io/apimachinery/pkg/util/sets"
)

// revisionAnnotation counts the templates of a Deployment; Kubernetes sets it on the Deployment and its ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// masked are fields that the API server sets and that differ from run to run. A comparison leaves out only these and
// maskedOf.
var masked = [][]string{
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"},
	{"metadata", "managedFields"},
}

// maskedOf are fields, by resource, in which Kubernetes' controllers report their own work, such as the number and
// order of rollouts. The numbers of pods and of available pods are compared.
var maskedOf = map[string][][]string{
	Deployments: {{"metadata", "annotations", revisionAnnotation}, {"status", "conditions"}, {"status", "collisionCount"}},
	// The current revision is that before the update revision where a rollout is not recorded as complete yet.
	StatefulSets: {{"status", "currentRevision"}, {"status", "currentReplicas"}, {"status", "collisionCount"}},
	ReplicaSets: {{"metadata", "annotations", revisionAnnotation},
		{"metadata", "annotations", "deployment.kubernetes.io/revision-history"}, {"status", "conditions"}},
	Budgets: {{"status"}},
	Pods:    {{"status", "conditions"}},
	Jobs:    {{"status"}},
}

// Normal is a state in a form that does not depend on what the API server generates: each object as JSON, by its key.
type Normal map[string]string

// Symbols are names for times, which replace these times in a normal form.
type Symbols map[string]time.Time

var (
	// The operator's hash of the fields that it has applied, which include the owner's UID.
	hashPattern = regexp.MustCompile(`("memcached-operator.example.com/applied-fields": )"[^"]+"`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	// The name of a pod that no longer exists, for example in a message. Names of existing pods are replaced earlier.
	podPattern = regexp.MustCompile(
		`-(\(template( \d+)? of [a-z0-9.-]+\)|[bcdf-hj-np-tv-z2-9]{5,10})-[bcdf-hj-np-tv-z2-9]{5}\b`)
	uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// Normalize returns the state of a namespace in normal form. UIDs of deleted objects are resolved from versions.
func Normalize(namespace string, state State, versions []Version, symbols Symbols) Normal {
	uids := map[string]string{}
	for _, version := range versions {
		uids[string(version.Object.GetUID())] = fmt.Sprintf("(uid of %s)", version.Key)
	}
	for key, object := range state { // these take precedence over deleted objects
		uids[string(object.GetUID())] = fmt.Sprintf("(uid of %s)", key)
	}
	names := podNames(state)
	maps.Copy(names, templateHashes(state))
	normal := Normal{}
	for key, object := range state {
		if key.Resource == ReplicaSets && isEmpty(object) {
			continue // it belongs to an earlier template, and timing decides whether that was ever rolled out
		}
		text := hashPattern.ReplaceAllString(canonical(key.Resource, object), `$1"(hash)"`)
		text = podPattern.ReplaceAllString(rename(text, names), "-(pod)")
		text = uidPattern.ReplaceAllStringFunc(text, func(uid string) string {
			return rename(cmp.Or(uids[uid], "(uid of nothing)"), names)
		})
		text = strings.ReplaceAll(text, namespace, "(namespace)")
		normal[symbols.Rename(rename(key.String(), names))] = symbols.Rename(text)
	}
	return normal
}

// rename replaces names, the longest first: the name of a pod contains that of its ReplicaSet.
func rename(text string, names map[string]string) string {
	longestFirst := func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }
	for _, name := range slices.SortedFunc(maps.Keys(names), longestFirst) {
		text = strings.ReplaceAll(text, name, names[name])
	}
	return text
}

// canonical returns an object as JSON without the masked fields. Each observedGeneration becomes its difference from
// the object's generation, and each lastTransitionTime the same.
func canonical(resource string, object *unstructured.Unstructured) string {
	object = object.DeepCopy()
	status, _ := object.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, part := range append(slices.Clone(conditions), status) {
		part, _ := part.(map[string]any)
		if observed, ok := part["observedGeneration"].(int64); ok {
			part["observedGeneration"] = observed - object.GetGeneration()
		}
		if _, ok := part["lastTransitionTime"]; ok { // which may be a scheduled time by chance
			part["lastTransitionTime"] = "2000-01-01T00:00:00Z"
		}
	}
	for _, path := range slices.Concat(masked, maskedOf[resource]) {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	text, err := json.MarshalIndent(object.Object, "", " ")
	if err != nil {
		panic(err) // impossible: the object was decoded from JSON
	}
	return string(text)
}

func isEmpty(set *unstructured.Unstructured) bool {
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	total, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
	return replicas == 0 && total == 0
}

// podNames maps the random name of each pod to its controller's name and a number.
func podNames(state State) map[string]string {
	names, counts := map[string]string{}, map[string]int{}
	for _, pod := range state.Of(Pods) {
		if controller := metav1.GetControllerOf(pod); controller != nil {
			counts[controller.Name]++
			names[pod.GetName()] = fmt.Sprintf("%s-(%d)", controller.Name, counts[controller.Name])
		}
	}
	return names
}

// templateHashes maps each hash in the names of ReplicaSets and pods to the Deployment and a number, the oldest
// ReplicaSet first. The same template has another hash if a ReplicaSet of a deleted Deployment of that name remains.
func templateHashes(state State) map[string]string {
	replicaSets := state.Of(ReplicaSets)
	slices.SortStableFunc(replicaSets, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(revision(a), revision(b)))
	})
	names, counts := map[string]string{}, map[string]int{}
	for _, set := range replicaSets {
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

// revision returns the number of the template of a ReplicaSet in its Deployment.
func revision(set *unstructured.Unstructured) int {
	number, _ := strconv.Atoi(set.GetAnnotations()[revisionAnnotation])
	return number
}

// Rename replaces times by their symbols, also in the names of Jobs and in schedules, and all other times by "(time)".
func (s Symbols) Rename(text string) string {
	for symbol, t := range s {
		text = strings.ReplaceAll(text, t.UTC().Format(time.RFC3339), "("+symbol+")")
		text = strings.ReplaceAll(text, "-"+JobSuffix(t), "-("+symbol+")")
		text = strings.ReplaceAll(text, fmt.Sprintf(`"%d * * * *"`, t.Minute()), `"(hourly)"`)
	}
	return timePattern.ReplaceAllString(text, "(time)")
}

// JobSuffix returns the end of the name of the Job for a time: in minutes, or in seconds if it is not a full minute.
func JobSuffix(t time.Time) string {
	if t.Unix()%60 == 0 {
		return fmt.Sprintf("%08d", t.Unix()/60)
	}
	return fmt.Sprintf("%010d", t.Unix())
}

// mostLines is the maximum number of lines in a difference.
const mostLines = 12

// Diff returns the lines that only one of two states has; an empty string if the states are equal.
func Diff(expected, actual Normal) string {
	before, after := linesOf(expected), linesOf(actual)
	var lines []string
	for _, line := range sets.List(before.Difference(after)) {
		lines = append(lines, "- "+line)
	}
	for _, line := range sets.List(after.Difference(before)) {
		lines = append(lines, "+ "+line)
	}
	if len(lines) > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("and %d lines more", len(lines)-mostLines))
	}
	if len(lines) == 0 && !maps.Equal(expected, actual) {
		return "the same lines in another order"
	}
	return strings.Join(lines, "\n")
}

// linesOf returns all lines of a state, each with the key of its object.
func linesOf(n Normal) sets.Set[string] {
	lines := sets.New[string]()
	for key, text := range n {
		for line := range strings.Lines(text) {
			lines.Insert(key + ": " + strings.TrimSpace(line))
		}
	}
	return lines
}
