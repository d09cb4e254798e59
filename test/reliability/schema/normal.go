package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

// Besides the differences that history.Normalize removes, a changed resource may differ from a fresh one in what its
// status records of earlier times, and in the times that the trial has made due. This file removes these.

// remembered are fields of a status that are removed if their time is older than the current class.
var remembered = []string{"lastScheduleTime", "lastMissedTime", "lastSuccessfulTime", "lastFailedTime"}

var jobName = regexp.MustCompile(`\b` + objectName + `-(\d{8}|\d{10})\b`)

// normal returns a cluster state in normal form.
func (s *subject) normal(state history.State) history.Normal {
	state = maps.Clone(state)
	symbols := calendarOf(state)
	for i, due := range s.dueTimes {
		symbol := fmt.Sprintf("DUE%d", i)
		symbols[symbol], symbols[symbol+"-1h"], symbols[symbol+"+1h"] = due, due.Add(-period), due.Add(period)
	}
	if resource := state[s.key()]; resource != nil {
		resource = resource.DeepCopy()
		s.forget(resource)
		state[s.key()] = resource
	}
	return history.Normalize(s.Name, state, nil, symbols)
}

// forget removes the times of earlier classes from a status.
func (s *subject) forget(resource *unstructured.Unstructured) {
	status, _ := resource.Object["status"].(map[string]any)
	for _, name := range remembered {
		value, err := time.Parse(time.RFC3339, fmt.Sprint(status[name]))
		if err == nil && (len(s.dueTimes) == 0 || value.Before(s.dueTimes[0])) {
			delete(status, name)
		}
	}
}

// objectsOf returns the objects of a resource in a normal form.
func objectsOf(state history.Normal, resource string) []map[string]any {
	var objects []map[string]any
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if strings.HasPrefix(key, resource+"/") {
			objects = append(objects, decodeObject(state[key]))
		}
	}
	return objects
}

func stamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}
