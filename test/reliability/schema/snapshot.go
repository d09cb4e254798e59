package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot returns all that there is of our kinds and of their children in a namespace, as the API server has it, in a form in which two
// namespaces with the same resources are alike: one line for each object. CronJobs in it have never been due.
func (w *World) Snapshot(ctx context.Context, namespace string) (string, error) {
	kinds, err := Kinds()
	if err != nil {
		return "", err
	}
	all := slices.Clone(watched)
	for _, kind := range kinds {
		all = append(all, schema.FromAPIVersionAndKind(kind.APIVersion, kind.Name))
	}
	var objects []unstructured.Unstructured
	for _, kind := range all {
		found, err := listed(ctx, w.ControlPlane.Client, kind, namespace)
		if err != nil {
			return "", err
		}
		objects = append(objects, found...)
	}
	symbols := []string{namespace, "NAMESPACE"}
	var lines []string
	for i := range objects {
		symbols = append(symbols, string(objects[i].GetUID()), fmt.Sprintf("UID of %s %s", objects[i].GetKind(), objects[i].GetName()))
		stripped := strip(&objects[i])
		if status, _ := stripped["status"].(map[string]any); status["scheduledSince"] != nil {
			status["scheduledSince"] = "TIME"
			if strings.HasPrefix(fmt.Sprint(at(stripped, "spec", "schedule")), "@every") {
				status["nextScheduleTime"] = "TIME"
			}
		}
		lines = append(lines, lineOf(stripped))
	}
	slices.Sort(lines)
	return podName.ReplaceAllString(strings.NewReplacer(symbols...).Replace(strings.Join(lines, "\n")), "$1-POD"), nil
}

// Namespace makes a namespace to try things in, and returns its name.
func (w *World) Namespace(ctx context.Context) (string, error) {
	return w.namespace(ctx)
}

// Children returns the children that there are in a namespace.
func (w *World) Children(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	var children []unstructured.Unstructured
	for _, kind := range watched {
		found, err := listed(ctx, w.ControlPlane.Client, kind, namespace)
		if err != nil {
			return nil, err
		}
		children = append(children, found...)
	}
	return children, nil
}

// Difference tells where two snapshots begin to differ.
func Difference(got, want string) string {
	return difference(got, want)
}
