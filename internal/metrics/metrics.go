// Package metrics serves what administrators need to know about all resources of a kind: how many there are by
// condition, and how long the status takes to follow a change. The number of series does not depend on the number of
// resources. docs/monitoring.md documents them.
package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind whose resources are counted.
type Kind struct {
	// Name is the value of the label kind.
	Name string
	// List is an empty list of its resources.
	List client.ObjectList
	// Conditions returns the conditions of a resource.
	Conditions func(runtime.Object) []metav1.Condition
}

// conditions are always counted, so that alerts and dashboards have a value of 0. All kinds have them.
var conditions = []string{"Available", "Progressing", "Degraded"}

var statuses = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

var resources = prometheus.NewDesc("memcached_operator_resources",
	"Number of resources of a kind whose condition has a status. Only the leader counts.",
	[]string{"kind", "condition", "status"}, nil)

// Collector counts the resources in a cache at each scrape.
type Collector struct {
	cache   client.Reader
	elected <-chan struct{}
	kinds   []Kind
}

// NewCollector returns a collector that counts what a cache has, as soon as elected is closed.
func NewCollector(cache client.Reader, elected <-chan struct{}, kinds ...Kind) *Collector {
	return &Collector{cache: cache, elected: elected, kinds: kinds}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- resources }

// Collect implements [prometheus.Collector]. As long as the cache is not synced, it collects nothing.
func (c *Collector) Collect(all chan<- prometheus.Metric) {
	select {
	case <-c.elected:
	default:
		return
	}
	for _, kind := range c.kinds {
		for key, count := range c.count(kind) {
			all <- prometheus.MustNewConstMetric(resources, prometheus.GaugeValue, count,
				kind.Name, key.condition, string(key.status))
		}
	}
}

type key struct {
	condition string
	status    metav1.ConditionStatus
}

func (c *Collector) count(kind Kind) map[key]float64 {
	list := kind.List.DeepCopyObject().(client.ObjectList)
	if err := c.cache.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	counts := map[key]float64{}
	know := func(condition string) {
		for _, status := range statuses {
			counts[key{condition, status}] += 0
		}
	}
	for _, condition := range conditions {
		know(condition)
	}
	_ = meta.EachListItem(list, func(object runtime.Object) error {
		for _, condition := range kind.Conditions(object) {
			know(condition.Type)
			counts[key{condition.Type, condition.Status}]++
		}
		return nil
	})
	return counts
}
