package schema

import (
	"context"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/reliability/history"
)

// special is what neither the schema of a field nor package kinds says. Most fields need no entry.
type special struct {
	// values replace the accepted values of package kinds where those are many, or where some are degraded.
	values []class
	// base are other fields of the spec.
	base map[string]any
	// pods is how many pods a namespace has room for; 0 is no limit.
	pods int
	// prepare creates what exists beside a new resource.
	prepare func(context.Context, *subject) error
	// unsettle runs before each change, and provoke after it.
	unsettle, provoke func(context.Context, *subject) error
	// carry sets what another client may set where the field is left out, and what stays when it is removed.
	carry func(ctx context.Context, s *subject, value any) error
	// expect checks what a fresh resource of a class becomes: a fresh resource and a changed one may be wrong in the same
	// way. The class has the value that is carried if it has none itself.
	expect func(c class, resource map[string]any, end history.Normal) error
	// limits is the condition of the finished Jobs that the field limits (limits.go).
	limits batchv1.JobConditionType
}

// specials are by the kind and the path of a field, or by the kind for what all its fields have in common.
var specials = map[string]special{
	"Foo spec.deploymentName":                 deploymentName,
	"Foo spec.replicas":                       replicas,
	"Memcached spec.size":                     size,
	"CronJob":                                 {provoke: once},
	"CronJob spec.schedule":                   schedule,
	"CronJob spec.timeZone":                   timeZone,
	"CronJob spec.concurrencyPolicy":          concurrencyPolicy,
	"CronJob spec.suspend":                    suspend,
	"CronJob spec.startingDeadlineSeconds":    startingDeadlineSeconds,
	"CronJob spec.successfulJobsHistoryLimit": {limits: batchv1.JobComplete, base: keptJobs},
	"CronJob spec.failedJobsHistoryLimit":     {limits: batchv1.JobFailed, base: keptJobs},
}

// podRoom is how many pods fit into a namespace in which the highest count is tested.
const podRoom = 6

// specialOf returns what is known of a field, completed with what its kind has.
func specialOf(k *kind, f field) special {
	s := specials[k.Name+" "+f.Path]
	if s.provoke == nil && s.prepare == nil {
		s.provoke = specials[k.Name].provoke
	}
	base := kinds.Spec(k.Make("", objectName, 1))
	if k.resource == history.CronJobs {
		base["jobTemplate"] = jobTemplate()
	}
	maps.Copy(base, s.base)
	s.base = base
	return s
}

func expect(isMet bool, format string, args ...any) error {
	if isMet {
		return nil
	}
	return fmt.Errorf("it should have "+format, args...)
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
