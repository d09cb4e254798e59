package schema

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/memcached-operator/test/reliability/history"
)

// table is what the schema of a kind does not say.
type table struct {
	// base is a spec that the kind accepts, and provoke makes a field take effect after each change, where nothing else is
	// said.
	base    map[string]any
	provoke func(context.Context, *subject) error
	fields  map[string]special
}

// special is what the schema of a field does not say. A field needs no entry unless a CEL rule restricts it.
type special struct {
	// values are listed where a rule restricts them; limits of numbers and enums come from the schema.
	values []Class
	base   map[string]any
	// pods is how many pods a namespace has room for; 0 is no limit.
	pods int
	// prepare creates what exists beside a new resource.
	prepare func(context.Context, *subject) error
	// unsettle runs before each change, and provoke after it.
	unsettle, provoke func(context.Context, *subject) error
	// carried returns what stays of the class before, as the field's documentation says, and carry gives it to a fresh
	// resource.
	carried func(before string, class Class) string
	carry   func(ctx context.Context, s *subject, carried string) error
	// expect checks what a fresh resource of a class becomes: a fresh resource and a changed one may be wrong in the same
	// way.
	expect func(class Class, resource map[string]any, end history.Normal) error
	// limits is the condition of the finished Jobs that the field limits (limits.go).
	limits batchv1.JobConditionType
}

var tables = map[string]table{"Foo": fooTable, "Memcached": memcachedTable, "CronJob": cronJobTable}

// podRoom is how many pods fit into a namespace in which the highest count is tested.
const podRoom = 6

// specialOf returns what is known of a field, completed with what its kind has.
func specialOf(kind *Kind, field Field) special {
	known := tables[kind.Name]
	s := known.fields[field.Path]
	if s.base == nil {
		s.base = known.base
	}
	if s.provoke == nil && s.prepare == nil {
		s.provoke = known.provoke
	}
	return s
}

func expect(isMet bool, what string) error {
	if isMet {
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
