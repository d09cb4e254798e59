package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

func read(t *testing.T) []Kind {
	t.Helper()
	kinds, err := Kinds()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// Our own fields are known by name here, so that a new one is not forgotten: it needs values, and a say in expectations.
func TestEveryFieldOfOursIsTried(t *testing.T) {
	for _, kind := range read(t) {
		for _, leaf := range kind.Leaves {
			if leaf.inTemplate() {
				continue
			}
			if _, isHistory := histories[leaf.Path]; !isHistory && expectations[leaf.Path] == nil {
				t.Errorf("nothing is expected of %s %s", kind.Name, leaf.Path)
			}
			taken, others := 0, 0
			for _, class := range leaf.Classes() {
				if class.fate == refused {
					others++
				} else {
					taken++
				}
			}
			if taken < 3 || others < 1 {
				t.Errorf("%s %s: %d classes that are taken, %d that are refused", kind.Name, leaf.Path, taken, others)
			}
		}
	}
}

// The leaves are those that a schema declares: found here by another way, in its text.
func TestLeavesAreAll(t *testing.T) {
	for _, kind := range read(t) {
		content, err := json.Marshal(kind.spec)
		if err != nil {
			t.Fatal(err)
		}
		if declared := countTypes(decodeObject(string(content))); declared != len(kind.Leaves)+len(kind.Opaque) {
			t.Errorf("%s: %d leaves and %d opaque fields of %d that are declared", kind.Name, len(kind.Leaves), len(kind.Opaque), declared)
		}
	}
}

// countTypes counts the schemas that have no others inside, but for the elements of lists and maps of plain values.
func countTypes(schema map[string]any) int {
	if properties, ok := schema["properties"].(map[string]any); ok {
		count := 0
		for _, property := range properties {
			count += countTypes(property.(map[string]any))
		}
		return count
	}
	if items, ok := schema["items"].(map[string]any); ok {
		return countTypes(items)
	}
	return 1
}

// A field that nobody has thought of yet is tried on a resource of its own kind, and of nothing but what that kind takes and requires.
func TestPlansOfNewFields(t *testing.T) {
	leaf := Leaf{Path: "spec.madeUp", schema: &props{Type: "string"}}
	bases := map[string][]string{"Foo": {"deploymentName"}, "Memcached": {"size"}, "CronJob": {"jobTemplate", "schedule"}}
	for _, kind := range read(t) {
		base := planOf(&kind, leaf).base
		if names := slices.Sorted(maps.Keys(base)); !slices.Equal(names, bases[kind.Name]) {
			t.Errorf("%s: the base has %v", kind.Name, names)
		}
		for _, name := range kind.spec.Required {
			if base[name] == nil {
				t.Errorf("%s: the base has no %s, which is required", kind.Name, name)
			}
		}
		if isProvoked := planOf(&kind, leaf).provoke != nil; isProvoked != (kind.Name == "CronJob") {
			t.Errorf("%s: whether it is made due is %v", kind.Name, isProvoked)
		}
	}
	if base := planOf(&Kind{Name: "New"}, leaf).base; len(base) > 0 {
		t.Errorf("of a new kind, the base has %v", base)
	}
}

// The package's documentation and the page say which classes the fields of the template have.
func TestClassesOfTheTemplate(t *testing.T) {
	for _, kind := range read(t) {
		for _, leaf := range kind.Leaves {
			if classes := leaf.Classes(); leaf.inTemplate() && len(classes) != classesOfTemplate {
				t.Errorf("%s has the classes %v", leaf.Path, classes)
			}
		}
	}
}

// The types of a CronJob carry every value of its template, but for a false that is the same as nothing. What the cluster makes of it is tried
// there.
func TestTypesCarryTheTemplate(t *testing.T) {
	for _, kind := range read(t) {
		for _, leaf := range kind.Leaves {
			if !leaf.inTemplate() {
				continue
			}
			for _, class := range leaf.Classes()[1:3] {
				spec := kind.apply(planOf(&kind, leaf).base, leaf, class)
				var typed tutorialv1.CronJobSpec
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &typed); err != nil {
					t.Fatalf("%s: %v", leaf.Path, err)
				}
				back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := valueOf(back, leaf), valueOf(spec, leaf); !alike(got, want) && want != false {
					t.Errorf("%s: %v becomes %v", leaf.Path, want, got)
				}
			}
		}
	}
}

func valueOf(spec map[string]any, leaf Leaf) any {
	var value any = spec
	for _, step := range steps(leaf.Path) {
		object, _ := value.(map[string]any)
		value = object[step.name]
		if list, ok := value.([]any); ok && step.isList && len(list) > 0 {
			value = list[0]
		}
	}
	return value
}

// alike compares two values; a quantity is read as a number and written as text.
func alike(a, b any) bool {
	text := func(value any) string {
		content, _ := json.Marshal(value)
		return strings.ReplaceAll(string(content), `"`, "")
	}
	return text(a) == text(b)
}

func TestCircuit(t *testing.T) {
	for n := 1; n < 9; n++ {
		tour := circuit(n)
		pairs := map[[2]int]int{}
		for i := range len(tour) - 1 {
			pairs[[2]int{tour[i], tour[i+1]}]++
		}
		if len(pairs) != n*(n-1) || len(tour) != n*(n-1)+1 || tour[0] != 0 || tour[len(tour)-1] != 0 {
			t.Errorf("%d: %v", n, tour)
		}
	}
}

func TestPutAndDrop(t *testing.T) {
	for _, kind := range read(t) {
		for _, leaf := range kind.Leaves {
			spec := map[string]any{}
			kind.put(spec, leaf, "mark")
			if valueOf(spec, leaf) != "mark" {
				t.Fatalf("%s: %v", leaf.Path, spec)
			}
			if drop(spec, leaf); valueOf(spec, leaf) != nil {
				t.Fatalf("%s: %v", leaf.Path, spec)
			}
		}
	}
}

func TestCloneIsDeep(t *testing.T) {
	spec := map[string]any{"a": []any{map[string]any{"b": "c"}}}
	copied := clone(spec)
	copied["a"].([]any)[0].(map[string]any)["b"] = "d"
	if !reflect.DeepEqual(spec, map[string]any{"a": []any{map[string]any{"b": "c"}}}) {
		t.Errorf("%v", spec)
	}
}

func TestShortIsTheSameForTheSameSeed(t *testing.T) {
	chosen := func(seed uint64) (paths []string, kinds map[string]int) {
		kinds = map[string]int{}
		for _, task := range choose(read(t), Options{Short: true, Seed: seed}) {
			paths, kinds[task.kind.Name] = append(paths, task.leaf.Path), kinds[task.kind.Name]+1
		}
		return paths, kinds
	}
	first, kinds := chosen(1)
	if again, _ := chosen(1); !slices.Equal(first, again) {
		t.Errorf("%v, and then %v", first, again)
	}
	if other, _ := chosen(2); slices.Equal(first, other) {
		t.Errorf("another seed chooses the same: %v", other)
	}
	if len(kinds) != 3 {
		t.Errorf("the kinds are %v", kinds)
	}
}

// Which fields have one legal value only is told of any field, whatever its type: it is one that all Jobs by hand have.
func TestFieldsWithOneValue(t *testing.T) {
	var single []string
	for _, kind := range read(t) {
		for _, leaf := range kind.Leaves {
			of := func(handed ...string) *trial {
				tried := &trial{leaf: leaf, handed: map[string]bool{}}
				for _, job := range handed {
					tried.handed[job] = true
				}
				return tried
			}
			const job = `{"apiVersion": "v1"}`
			if of("{}").hasOnlyValue() || of(job, "{}").hasOnlyValue() {
				t.Errorf("%s %s is said to be what no Job has, or not every one", kind.Name, leaf.Path)
			}
			if of(job).hasOnlyValue() {
				single = append(single, leaf.Path)
			}
		}
	}
	if len(single) == 0 {
		t.Fatal("there is none")
	}
	for _, path := range single {
		if !strings.HasSuffix(path, "fieldRef.apiVersion") {
			t.Errorf("%s is said to have one value", path)
		}
	}
}
