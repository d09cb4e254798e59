package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A fresh resource and a changed one may both be wrong, and alike. So what a class is to bring about is also said here, from the
// documentation of the fields, for a fresh resource in its normal form.
var expectations = map[string]func(class Class, resource map[string]any, children []map[string]any) error{
	"spec.deploymentName": func(class Class, _ map[string]any, children []map[string]any) error {
		return equal(len(children) == 1 && at(children[0], "metadata", "name") == class.value, "one Deployment of that name")
	},
	"spec.replicas": func(class Class, resource map[string]any, children []map[string]any) error {
		count, _ := class.value.(int64)
		if class.value == absent || class.value == nil {
			count = 1
		}
		return equal(at(children[0], "spec", "replicas") == float64(count) && (count > podRoom || at(resource, "status", "replicas") == float64(count)),
			"a Deployment of that many replicas, and a status that counts the pods") // of 2^31-1 the Deployment controller makes none: its surge overflows
	},
	"spec.size": func(class Class, resource map[string]any, children []map[string]any) error {
		pods := float64(min(class.value.(int64), podRoom))
		nodes, _ := at(resource, "status", "nodes").([]any)
		_, reason, _ := says(&unstructured.Unstructured{Object: resource}, "Available")
		isTrue := map[bool]string{true: "AllNodesReady", false: "SomeNodesReady"}[class.value.(int64) <= podRoom]
		if class.value == int64(0) {
			isTrue = "ScaledToZero"
		}
		return equal(len(children) == 3 && at(children[0], "spec", "replicas") == float64(class.value.(int64)) && float64(len(nodes)) == pods &&
			at(resource, "status", "readyNodes") == pods && reason == isTrue, isTrue+", a Deployment of that size, a Service, a PodDisruptionBudget, and a status that counts the nodes")
	},
	"spec.schedule": func(class Class, resource map[string]any, children []map[string]any) error {
		next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
		return equal(strings.HasSuffix(next, nextOf[class.Name]) && len(children) == 1, "as the next time …"+nextOf[class.Name]+", and no Job but the one that is there")
	},
	"spec.timeZone": func(class Class, resource map[string]any, _ []map[string]any) error {
		next := fmt.Sprint(at(resource, "status", "nextScheduleTime"))
		return equal(strings.HasSuffix(next, nextOf[class.Name]), "as the next time …"+nextOf[class.Name])
	},
	"spec.concurrencyPolicy": func(class Class, _ map[string]any, children []map[string]any) error {
		names := map[any]string{"Forbid": "TICK0", "Replace": "TICK1"}[class.value]
		if names == "" {
			names = "TICK0 TICK1"
		}
		return equal(namesOf(children) == names, "the Jobs "+names)
	},
	"spec.suspend": func(class Class, resource map[string]any, children []map[string]any) error {
		if class.value == true {
			return equal(len(children) == 0 && at(resource, "status", "scheduledSince") == nil, "no Job, and no time to count from")
		}
		return equal(namesOf(children) == "TICK0", "the Job TICK0")
	},
	"spec.startingDeadlineSeconds": func(class Class, resource map[string]any, children []map[string]any) error {
		if seconds, ok := class.value.(int64); ok && seconds < 60 {
			return equal(len(children) == 0 && at(resource, "status", "lastMissedTime") == "TICK0", "no Job, and a time that is missed")
		}
		return equal(namesOf(children) == "TICK0" && at(resource, "status", "lastMissedTime") == nil, "the Job TICK0, and no time that is missed")
	},
}

// nextOf is what status.nextScheduleTime ends in for the classes of schedules and zones. None has a time in the days before today, but
// those of an hour.
var nextOf = map[string]string{
	"fields": "-01-01T00:00:00Z", "names and ranges": "T06:30:00Z", "name": "-01-01T00:00:00Z", "every": "TIME", "longest": "-02-29T12:00:00Z",
	"never": "<nil>", "ends before it begins": "<nil>",
	"absent": "-01-01T12:00:00Z", "null": "-01-01T12:00:00Z", "UTC": "-01-01T12:00:00Z", "zone": "-01-01T11:00:00Z", "long": "-01-01T15:00:00Z",
	"no such zone": "<nil>", "long and no zone": "<nil>",
}

// expected checks a fresh resource of one of our own fields.
func expected(leaf Leaf, class Class, state string) error {
	check, ok := expectations[leaf.Path]
	if !ok {
		return nil
	}
	var objects []map[string]any
	for line := range strings.Lines(state) {
		objects = append(objects, decodeObject(line))
	}
	if err := check(class, objects[0], objects[1:]); err != nil {
		return fmt.Errorf("%w; it is %s", err, state)
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

// namesOf returns what the names of Jobs end in.
func namesOf(children []map[string]any) string {
	names := make([]string, len(children))
	for i, child := range children {
		names[i] = strings.TrimPrefix(fmt.Sprint(at(child, "metadata", "name")), objectName+"-")
	}
	return strings.Join(names, " ")
}
