package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/owned"
)

// What two worlds may differ in although they are the same is all in this file: names and times that somebody else gives, what the
// controllers of Kubernetes write for themselves, and what a status remembers of the time before.

// serverMade are the fields of metadata that the API server fills in.
var serverMade = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}

// remembered are the times in a status that tell of what was before the change that is looked at, where they are older than that.
var remembered = []string{"lastScheduleTime", "lastMissedTime", "lastSuccessfulTime", "lastFailedTime"}

var (
	podName = regexp.MustCompile(`\b([a-z0-9.-]+)-[bcdf-hj-np-tv-z2-9]{5,10}-[bcdf-hj-np-tv-z2-9]{5}\b`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	jobName = regexp.MustCompile(`\b` + objectName + `-(\d{8}|\d{10})\b`)
)

// normal returns a resource and its children as text, one line for each, in which what may differ is replaced by what it stands for.
func (s *subject) normal(resource *unstructured.Unstructured, children []unstructured.Unstructured) string {
	symbols := make([]string, 0, 2*(2+4*len(s.ticks)+len(children))) // in pairs: what is replaced, and by what
	symbols = append(symbols, s.namespace, "NAMESPACE", string(resource.GetUID()), "UID of "+s.kind.Name)
	for i, tick := range s.ticks {
		symbol := fmt.Sprintf("TICK%d", i)
		symbols = append(symbols,
			stamp(tick), symbol,
			stamp(tick.Add(-period)), symbol+"-1h",
			stamp(tick.Add(period)), symbol+"+1h",
			nameOfJob(tick), objectName+"-"+symbol)
	}
	own := s.stripOwn(resource)
	var lines []string
	for i := range children {
		symbols = append(symbols, string(children[i].GetUID()), "UID of a child")
		child := strip(&children[i])
		if at(child, "spec", "replicas") == int64(math.MaxInt32) {
			delete(child, "status")
			uncount(own)
		}
		lines = append(lines, lineOf(child))
	}
	slices.Sort(lines)
	lines = append([]string{lineOf(own)}, lines...)
	text := strings.NewReplacer(symbols...).Replace(strings.Join(lines, "\n"))
	text = podName.ReplaceAllString(text, "$1-POD")
	if strings.HasPrefix(s.schedule(resource), "@every") {
		text = instant.ReplaceAllString(text, "TIME")
	}
	return text
}

// stripOwn returns our resource without what may differ.
func (s *subject) stripOwn(resource *unstructured.Unstructured) map[string]any {
	stripped := strip(resource)
	status, _ := stripped["status"].(map[string]any)
	for _, name := range remembered {
		if said, err := time.Parse(time.RFC3339, fmt.Sprint(status[name])); err == nil && (len(s.ticks) == 0 || said.Before(s.ticks[0])) {
			delete(status, name)
		}
	}
	if status["scheduledSince"] != nil && len(s.ticks) == 0 {
		status["scheduledSince"] = "TIME"
	}
	return stripped
}

// uncount takes out of a status how many pods there are. Of a Deployment of 2^31-1 replicas that depends on how many there were before:
// with those that may be there besides in a rollout it is more than the Deployment controller can count, and it makes none.
func uncount(resource map[string]any) {
	status := resource["status"].(map[string]any)
	delete(status, "replicas")
	delete(status, "availableReplicas")
	conditions, _ := status["conditions"].([]any)
	status["conditions"] = len(conditions)
}

// strip returns an object without what others than the operator have filled in.
func strip(object *unstructured.Unstructured) map[string]any {
	content := clone(object.Object)
	metadata := content["metadata"].(map[string]any)
	for _, name := range serverMade {
		delete(metadata, name)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations[owned.FieldsAnnotation] != nil {
		annotations[owned.FieldsAnnotation] = "HASH" // the UID of the owner is in it
	}
	status, _ := content["status"].(map[string]any)
	switch object.GetKind() {
	case "Deployment":
		delete(annotations, "deployment.kubernetes.io/revision")
		content["status"] = map[string]any{"replicas": status["replicas"], "availableReplicas": status["availableReplicas"]}
	case "Job", "Service", "PodDisruptionBudget":
		delete(content, "status")
	default:
		untime(status, object.GetGeneration())
	}
	return content
}

// untime takes the times of transitions out of a status of ours, and says of generations whether they are current.
func untime(status map[string]any, generation int64) {
	mark := func(part map[string]any) {
		if part["observedGeneration"] == generation {
			part["observedGeneration"] = "CURRENT"
		}
	}
	mark(status)
	conditions, _ := status["conditions"].([]any)
	for _, condition := range conditions {
		condition := condition.(map[string]any)
		delete(condition, "lastTransitionTime")
		mark(condition)
	}
}

// handedOn returns what a Job has from the template it was made of, as text.
func handedOn(job *unstructured.Unstructured) string {
	annotations := map[string]string{}
	maps.Copy(annotations, job.GetAnnotations())
	delete(annotations, owned.OwnerAnnotation)
	delete(annotations, tutorialv1.ScheduledAtAnnotation)
	text := lineOf(map[string]any{"labels": job.GetLabels(), "annotations": annotations, "spec": job.Object["spec"]})
	return strings.NewReplacer(string(job.GetUID()), "UID", job.GetName(), "JOB").Replace(text)
}

func lineOf(content map[string]any) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // it has come as JSON
	}
	return string(text)
}

func stamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

// difference tells where two texts begin to differ.
func difference(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(0, at-120)
	return fmt.Sprintf("it is   …%.400s\nand not …%.400s", got[min(from, len(got)):], want[min(from, len(want)):])
}
