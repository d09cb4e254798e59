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

// special has the properties of a field that neither its schema nor package kinds has. Most fields need no entry.
type special struct {
	// values replace the accepted values of package kinds if these are many, or if some result in Degraded.
	values []class
	// base has the other fields of the spec.
	base map[string]any
	// pods is the quota for pods of a namespace; 0 is no quota.
	pods int
	// prepare creates the objects that exist beside a new resource.
	prepare func(context.Context, *subject) error
	// unsettle runs before each change, and provoke after it.
	unsettle, provoke func(context.Context, *subject) error
	// carry sets on a child the value that another client may set while the field is absent. The operator keeps that
	// value, and the last value of the field when it is removed.
	carry func(ctx context.Context, s *subject, value any) error
	// expect checks the settled state of a fresh resource of a class, because fresh and changed resources may be wrong in
	// the same way. If the class has no value, it has the carried one.
	expect func(c class, resource map[string]any, end history.Normal) error
	// onlyNew are values that only a new resource may have. Such a resource cannot change to another value either.
	onlyNew []class
	// isLate is set if the value is set on a resource that has settled without it, because a new one gets no children.
	isLate bool
	// isNeeded is set if a rule of the parent rejects resources without the field.
	isNeeded bool
	// limits is the condition of the finished Jobs that the field limits (limits.go).
	limits batchv1.JobConditionType
}

// specials are listed by the kind and path of a field, or by the kind for all its fields.
var specials = map[string]special{
	"Foo spec.deploymentName":                           deploymentName,
	"Foo spec.replicas":                                 replicas,
	"Memcached spec.size":                               size,
	"Memcached spec.podTemplate.spec.priorityClassName": priorityClassName,
	"Memcached spec.podTemplate.spec.runtimeClassName":  runtimeClassName,
	"Memcached spec.warmupSeconds": {values: []class{{"none", int64(0), legal, nil}, {"one", int64(1), legal, nil},
		{"two", int64(2), legal, nil}}}, // pods of a Deployment take that long to be available
	"Memcached spec.paused":       paused,
	"Memcached spec.workloadType": workloadType,
	"Memcached spec.tls.clientCertificates.mode": {base: map[string]any{"tls": map[string]any{"secretName": "web",
		"clientCertificates": map[string]any{"mode": "Required", "caSecretName": "clients"}}}},
	"Memcached spec.tls.clientCertificates.caSecretName":    {isNeeded: true},
	"Memcached spec.tls.clientCertificates.caConfigMapName": {isNeeded: true},
	"CronJob":                                 {provoke: once},
	"CronJob spec.schedule":                   schedule,
	"CronJob spec.timeZone":                   timeZone,
	"CronJob spec.concurrencyPolicy":          concurrencyPolicy,
	"CronJob spec.suspend":                    suspend,
	"CronJob spec.startingDeadlineSeconds":    startingDeadlineSeconds,
	"CronJob spec.successfulJobsHistoryLimit": {limits: batchv1.JobComplete, base: keptJobs},
	"CronJob spec.failedJobsHistoryLimit":     {limits: batchv1.JobFailed, base: keptJobs},
}

// podRoom is the quota for pods of namespaces in which large counts are tested.
const podRoom = 6

// specialOf returns the special of a field, completed with that of its kind.
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
	return fmt.Errorf("expected "+format, args...)
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
