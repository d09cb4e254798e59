package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

// A fresh resource and a changed one may both be wrong, and alike. So what a class is to bring about is also said here, from the
// documentation of the fields, for a fresh resource in its normal form.
var expectations = map[string]func(class Class, resource map[string]any, end history.Normal) error{
	"spec.deploymentName": func(class Class, _ map[string]any, end history.Normal) error {
		return equal(namesOf(end, history.Deployments) == class.value, "one Deployment of that name")
	},
	"spec.replicas": func(class Class, resource map[string]any, end history.Normal) error {
		count, _ := class.value.(int64)
		if class.value == absent || class.value == nil {
			count = 1
		}
		return equal(at(objectsOf(end, history.Deployments)[0], "spec", "replicas") == float64(count) && (count > podRoom || at(resource, "status", "replicas") == float64(count)),
			"a Deployment of that many replicas, and a status that counts the pods") // of 2^31-1 the Deployment controller makes none: its surge overflows
	},
	"spec.size": func(class Class, resource map[string]any, end history.Normal) error {
		pods := float64(min(class.value.(int64), podRoom))
		nodes, _ := at(resource, "status", "nodes").([]any)
		_, reason, _ := says(&unstructured.Unstructured{Object: resource}, "Available")
		isTrue := map[bool]string{true: "AllNodesReady", false: "SomeNodesReady"}[class.value.(int64) <= podRoom]
		if class.value == int64(0) {
			isTrue = "ScaledToZero"
		}
		return equal(namesOf(end, history.Deployments) == objectName && namesOf(end, history.Services) == objectName && namesOf(end, history.Budgets) == objectName &&
			at(objectsOf(end, history.Deployments)[0], "spec", "replicas") == float64(class.value.(int64)) && float64(len(nodes)) == pods &&
			at(resource, "status", "readyNodes") == pods && reason == isTrue, isTrue+", a Deployment of that size, a Service, a PodDisruptionBudget, and a status that counts the nodes")
	},
	"spec.schedule": func(class Class, resource map[string]any, end history.Normal) error {
		next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
		return equal(strings.HasSuffix(next, nextOf[class.Name]) && namesOf(end, history.Jobs) == kept, "as the next time …"+nextOf[class.Name]+", and no Job but the one that is there")
	},
	"spec.timeZone": func(class Class, resource map[string]any, _ history.Normal) error {
		next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
		return equal(strings.HasSuffix(next, nextOf[class.Name]), "as the next time …"+nextOf[class.Name])
	},
	"spec.concurrencyPolicy": func(class Class, _ map[string]any, end history.Normal) error {
		names := map[any]string{"Forbid": firstJob, "Replace": secondJob}[class.value]
		if names == "" {
			names = firstJob + " " + secondJob
		}
		return equal(namesOf(end, history.Jobs) == names, "the Jobs "+names)
	},
	"spec.suspend": func(class Class, resource map[string]any, end history.Normal) error {
		if class.value == true {
			return equal(namesOf(end, history.Jobs) == "" && at(resource, "status", "scheduledSince") == nil, "no Job, and no time to count from")
		}
		return equal(namesOf(end, history.Jobs) == firstJob, "the Job "+firstJob)
	},
	"spec.startingDeadlineSeconds": func(class Class, resource map[string]any, end history.Normal) error {
		if seconds, ok := class.value.(int64); ok && seconds < 60 {
			return equal(namesOf(end, history.Jobs) == "" && at(resource, "status", "lastMissedTime") == "(TICK0)", "no Job, and a time that is missed")
		}
		return equal(namesOf(end, history.Jobs) == firstJob && at(resource, "status", "lastMissedTime") == nil, "the Job "+firstJob+", and no time that is missed")
	},
}

// The Jobs of the times that a trial makes due.
const (
	firstJob  = objectName + "-(TICK0)"
	secondJob = objectName + "-(TICK1)"
)

// nextOf is what status.nextScheduleTime ends in for the classes of schedules and zones. None has a time in the days before today, but
// those of an hour.
var nextOf = map[string]string{
	"fields": "-01-01 00:00:00)", "names and ranges": " 06:30:00)", "name": "-01-01 00:00:00)", "every": "(time)", "longest": "-02-29 12:00:00)",
	"never": "<nil>", "ends before it begins": "<nil>",
	"absent": "-01-01 12:00:00)", "null": "-01-01 12:00:00)", "UTC": "-01-01 12:00:00)", "zone": "-01-01 11:00:00)", "long": "-01-01 15:00:00)",
	"no such zone": "<nil>", "long and no zone": "<nil>",
}

// expected checks a fresh resource of one of our own fields.
func (t *trial) expected(class Class, end history.Normal) error {
	check, ok := expectations[t.leaf.Path]
	if !ok {
		return nil
	}
	if err := check(class, objectsOf(end, t.kind.Resource)[0], end); err != nil {
		return fmt.Errorf("%w; it is %s", err, end)
	}
	return nil
}

func equal(isSo bool, what string) error {
	if isSo {
		return nil
	}
	return fmt.Errorf("it should be %s", what)
}

func at(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

// namesOf returns the names of the objects of a resource.
func namesOf(end history.Normal, resource string) string {
	objects := objectsOf(end, resource)
	names := make([]string, len(objects))
	for i, object := range objects {
		names[i] = fmt.Sprint(at(object, "metadata", "name"))
	}
	return strings.Join(names, " ")
}
