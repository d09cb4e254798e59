package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"
)

// fixtures has an object of every type that the operator writes, and of a few more, with fields of every kind.
var fixtures = []struct {
	file string
	live func() runtime.Object
	want func() runtime.ApplyConfiguration
}{
	{"deployment", func() runtime.Object { return &appsv1.Deployment{} },
		func() runtime.ApplyConfiguration { return &appsv1ac.DeploymentApplyConfiguration{} }},
	{"statefulset", func() runtime.Object { return &appsv1.StatefulSet{} },
		func() runtime.ApplyConfiguration { return &appsv1ac.StatefulSetApplyConfiguration{} }},
	{"service", func() runtime.Object { return &corev1.Service{} },
		func() runtime.ApplyConfiguration { return &corev1ac.ServiceApplyConfiguration{} }},
	{"poddisruptionbudget", func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
		func() runtime.ApplyConfiguration { return &policyv1ac.PodDisruptionBudgetApplyConfiguration{} }},
	{"configmap", func() runtime.Object { return &corev1.ConfigMap{} },
		func() runtime.ApplyConfiguration { return &corev1ac.ConfigMapApplyConfiguration{} }},
}

// Whatever is changed, removed or added anywhere in an object, Covers agrees with structured-merge-diff, which the API
// server applies configurations with, about whether applying the configuration again would change something.
func TestCoversAgreesWithStructuredMergeDiff(t *testing.T) {
	for _, fixture := range fixtures {
		t.Run(fixture.file, func(t *testing.T) {
			content, err := os.ReadFile("testdata/" + fixture.file + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			want := fixture.want()
			if err := yaml.UnmarshalStrict(content, want); err != nil {
				t.Fatal(err)
			}
			changes, differences := 0, 0
			check := func(what string, tree any) {
				text, err := json.Marshal(tree)
				if err != nil {
					t.Fatal(err)
				}
				live := fixture.live()
				if err := json.Unmarshal(text, live); err != nil {
					if what == "unchanged" {
						t.Fatal(err)
					}
					return // not a value of this type
				}
				got, err := Covers(want, live)
				if err != nil {
					t.Fatal(err)
				}
				expected := mergesUnchanged(t, want, live)
				if got != expected {
					t.Errorf("%s: Covers is %t, structured-merge-diff reports %t", what, got, expected)
				}
				changes++
				if !expected {
					differences++
				}
			}
			var tree any
			if err := yaml.Unmarshal(content, &tree); err != nil {
				t.Fatal(err)
			}
			check("unchanged", tree)
			if differences != 0 {
				t.Error("the unchanged object differs")
			}
			mutate("", tree, func(what string) { check(what, tree) })
			t.Logf("%d changes, of which %d matter", changes, differences)
			if changes < 10 || differences == 0 || differences >= changes {
				t.Errorf("%d changes, of which %d make a difference: too few to test with", changes, differences)
			}
		})
	}
}

// mergesUnchanged reports whether merging want into live, by structured-merge-diff, leaves live as it is.
func mergesUnchanged(t testing.TB, want runtime.ApplyConfiguration, live runtime.Object) bool {
	t.Helper()
	liveType, err := TypeOf(live)
	if err != nil {
		t.Fatal(err)
	}
	as := func(object any) *typed.TypedValue {
		reflected, err := value.NewValueReflect(object)
		if err != nil {
			t.Fatal(err)
		}
		// Duplicates are what a live object may have.
		converted, err := typed.AsTyped(value.NewValueInterface(reflected.Unstructured()), liveType.schema, liveType.ref,
			typed.AllowDuplicates)
		if err != nil {
			t.Fatal(err)
		}
		return converted
	}
	liveValue := as(live)
	merged, err := liveValue.Merge(as(want))
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := liveValue.Compare(merged)
	if err != nil {
		t.Fatal(err)
	}
	return comparison.IsSame()
}

// mutate changes a tree of JSON at every place, one after the other, and calls visit while it is changed.
func mutate(path string, node any, visit func(what string)) {
	switch node := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			child, at := node[key], path+"."+key
			if at == ".kind" || at == ".apiVersion" {
				continue
			}
			delete(node, key)
			visit(at + " removed")
			for _, other := range others(child) {
				node[key] = other
				visit(fmt.Sprintf("%s set to %v", at, other))
			}
			node[key] = child
			mutate(at, child, visit)
		}
		node["added"] = "yes" // in a map; a struct has no such field
		visit(path + ".added")
		delete(node, "added")
	case []any:
		for i, child := range node {
			mutate(fmt.Sprintf("%s[%d]", path, i), child, visit)
		}
	}
}

// others returns values that a node could have instead.
func others(node any) []any {
	switch node := node.(type) {
	case string:
		return []any{node + "x"}
	case bool:
		return []any{!node}
	case float64:
		return []any{node + 1}
	case []any:
		reversed := slices.Clone(node)
		slices.Reverse(reversed)
		lists := []any{node[1:], append(slices.Clone(node), added(node[0]))}
		if !reflect.DeepEqual(reversed, node) {
			lists = append(lists, reversed)
		}
		return lists
	}
	return nil
}

// added returns another element for a list.
func added(element any) any {
	switch element := element.(type) {
	case map[string]any:
		copied := maps.Clone(element)
		for key, value := range copied {
			switch value := value.(type) {
			case string:
				copied[key] = value + "z"
			case float64:
				copied[key] = value + 7
			}
		}
		return copied
	case string:
		return element + "z"
	case float64:
		return element + 7
	}
	return element
}
