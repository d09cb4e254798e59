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

// history.Normalize lists what two equal cluster states may differ in. Listed here is what a changed resource may have
// besides, and a fresh one may not: what its status remembers of earlier times, and times that the trial has made due.

// remembered are the times in a status that are left out where they are older than the present class.
var remembered = []string{"lastScheduleTime", "lastMissedTime", "lastSuccessfulTime", "lastFailedTime"}

var jobName = regexp.MustCompile(`\b` + objectName + `-(\d{8}|\d{10})\b`)

// normal returns a cluster state in normal form.
func (s *subject) normal(world history.World) history.Normal {
	world = maps.Clone(world)
	symbols := calendarOf(world)
	for i, due := range s.dueTimes {
		symbol := fmt.Sprintf("DUE%d", i)
		symbols[symbol], symbols[symbol+"-1h"], symbols[symbol+"+1h"] = due, due.Add(-period), due.Add(period)
	}
	if resource := world[s.key()]; resource != nil {
		resource = resource.DeepCopy()
		s.forget(resource)
		world[s.key()] = resource
	}
	return history.Normalize(s.Name, world, nil, symbols)
}

// forget removes from a status what it remembers.
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
