package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/test/reliability/history"
)

// leftOut are the fields of a template that must not be set, because Jobs get their own.
var leftOut = []string{".metadata.name", ".metadata.namespace", ".metadata.finalizers", ".spec.selector", ".spec.manualSelector"}

// sort finds out which classes of a template the API server refuses. It must be those that it refuses of a Job, and what must be left out.
func (t *trial) sort(ctx context.Context) {
	var taken []Class
	for _, class := range t.taken {
		spec := t.kind.apply(t.plan.base, t.leaf, class)
		s := &subject{world: t.world, kind: t.kind, namespace: "default"}
		object := s.empty()
		object.Object["spec"] = clone(spec)
		refusal := t.world.ControlPlane.Client.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
		if refusal == nil {
			taken = append(taken, class)
			continue
		}
		t.others = append(t.others, class)
		if t.isLeftOut() {
			t.result.Effect = "must be left out, and the API server says so"
		} else if t.world.ControlPlane.Client.Create(ctx, byHand(spec, "default", objectName), client.DryRunAll) == nil {
			t.violated("%s: Kubernetes takes it of a Job, and not of a CronJob of ours: %v", class.Name, refusal)
		}
	}
	if t.taken = taken; len(taken) == 0 {
		t.taken = []Class{{"absent with what it is in", bare, legal}}
	}
}

func (t *trial) isLeftOut() bool {
	return slices.ContainsFunc(leftOut, func(path string) bool { return strings.HasPrefix(t.leaf.Path, templatePath+path) })
}

// byHand returns the Job that a spec of a CronJob describes.
func byHand(spec map[string]any, namespace, name string) *unstructured.Unstructured {
	template := spec["jobTemplate"].(map[string]any)
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": cloneValue(template["spec"])}}
	if metadata, ok := template["metadata"].(map[string]any); ok {
		job.Object["metadata"] = clone(metadata)
	}
	job.SetNamespace(namespace)
	job.SetName(name)
	return job
}

// isHandedOn checks that the Job which was due has all that the API server takes of the template, or that the API server's refusal is told.
func (t *trial) isHandedOn(ctx context.Context, s *subject, class Class, message string) error {
	want := byHand(t.kind.apply(t.plan.base, t.leaf, class), s.namespace, objectName+"-byhand")
	refusal := t.world.ControlPlane.Client.Create(ctx, want, client.DryRunAll)
	if refusal != nil {
		t.result.Effect = "refused by Kubernetes, and told"
		if words := strings.ReplaceAll(refusal.Error(), want.GetName(), nameOfJob(s.tick())); !strings.Contains(message, words[:min(len(words), 800)]) {
			return fmt.Errorf("such a Job is refused by Kubernetes (%w), and the condition Degraded says: %s", refusal, message)
		}
		return nil
	}
	t.handed[fmt.Sprint(handedOn(want))] = true
	return t.world.until(ctx, func() error {
		made := t.world.recorder.World(s.namespace).Of(history.Jobs)
		if len(made) != 1 {
			return fmt.Errorf("there are %d Jobs, and one was due", len(made))
		}
		if diff := history.Diff(handedOn(want), handedOn(made[0])); diff != "" {
			return errors.New("the Job is not what the template says (-by hand +made):\n" + diff)
		}
		return nil
	})
}

// handedOn returns what a Job has from the template it was made of.
func handedOn(job *unstructured.Unstructured) history.Normal {
	annotations := map[string]string{}
	maps.Copy(annotations, job.GetAnnotations())
	delete(annotations, owned.OwnerAnnotation)
	delete(annotations, tutorialv1.ScheduledAtAnnotation)
	text := indented(map[string]any{"labels": job.GetLabels(), "annotations": annotations, "spec": job.Object["spec"]})
	return history.Normal{history.Jobs: strings.NewReplacer(string(job.GetUID()), "UID", job.GetName(), "JOB").Replace(text)}
}
