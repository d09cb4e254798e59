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
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
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
			t.result.Effect = forbidden
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

// isHandedOn checks that the Job which was due has all that the API server takes of the template, or that the operator has asked for all of it
// and the API server's refusal is told.
func (t *trial) isHandedOn(ctx context.Context, s *subject, class Class, message string) error {
	want := byHand(t.kind.apply(t.plan.base, t.leaf, class), s.namespace, objectName+"-byhand")
	refusal := t.world.ControlPlane.Client.Create(ctx, want, client.DryRunAll)
	if refusal != nil {
		if words := strings.ReplaceAll(refusal.Error(), want.GetName(), nameOfJob(s.tick())); !strings.Contains(message, words[:min(len(words), 800)]) {
			return fmt.Errorf("such a Job is refused by Kubernetes (%w), and the condition Degraded says: %s", refusal, message)
		}
		return t.isAskedFor(ctx, s, want.GetName())
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

// isAskedFor checks that the operator has asked for the same Job as was asked for by hand, which the API server has refused.
func (t *trial) isAskedFor(ctx context.Context, s *subject, byHand string) error {
	return t.world.until(ctx, func() error { // the API server may answer before it logs
		since := t.world.ControlPlane.Audit.Since(s.begun, testenv.In(s.namespace))
		want, got := refusedJob(since, byHand), refusedJob(since, nameOfJob(s.tick()))
		if want == nil || got == nil {
			return fmt.Errorf("of the Jobs %s and %s that are refused, the API server's log does not have both", byHand, nameOfJob(s.tick()))
		}
		if diff := history.Diff(handedOn(want), handedOn(got)); diff != "" {
			return errors.New("the Job that is refused is not what the template says (-by hand +asked for):\n" + diff)
		}
		t.asked[fmt.Sprint(handedOn(want))] = true
		return nil
	})
}

// refusedJob returns the Job of a name that a request was to create and that was refused as invalid; nil if there was none.
func refusedJob(requests []testenv.Request, name string) *unstructured.Unstructured {
	for _, request := range requests {
		if request.Resource == "jobs" && request.Name == name && request.Refused != nil {
			return &unstructured.Unstructured{Object: decodeObject(string(request.Refused))}
		}
	}
	return nil
}

// handedOn returns what a Job has from the template it was made of.
func handedOn(job *unstructured.Unstructured) history.Normal {
	annotations := map[string]string{}
	maps.Copy(annotations, job.GetAnnotations())
	delete(annotations, child.OwnerAnnotation)
	delete(annotations, tutorialv1.ScheduledAtAnnotation)
	text := indented(map[string]any{"labels": job.GetLabels(), "annotations": annotations, "spec": job.Object["spec"]})
	own := []string{job.GetName(), "JOB"}
	if uid := string(job.GetUID()); uid != "" { // what was refused has none
		own = append(own, uid, "UID")
	}
	return history.Normal{history.Jobs: strings.NewReplacer(own...).Replace(text)}
}
