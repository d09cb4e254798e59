package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// In a short run, one in so many fields of the template gets a value of the wrong type, or is added to an accepted
// template.
const shortShare = 30

// forbidden are the fields of a template that must be left out, because Jobs get their own.
var forbidden = []string{"metadata.name", "metadata.namespace", "metadata.finalizers", "spec.selector",
	"spec.manualSelector"}

// visit calls do for the fields of a part of a template, and then for the fields of what the part has there. In a path,
// [0] is an element of a list.
func visit(path string, part map[string]any, schema *props, do func(path string, part map[string]any, name string,
	schema *props)) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		of, path := schema.Properties[name], path+"."+name
		do(path, part, name, &of)
		inner := part[name]
		if list, _ := inner.([]any); len(list) > 0 {
			inner, of, path = list[0], *of.Items.Schema, path+"[0]"
		}
		if object, isObject := inner.(map[string]any); isObject {
			visit(path, object, &of, do)
		}
	}
}

// roundTrip tests that everything in a template arrives in the Job: all the fields there are in a Job that Kubernetes
// refuses, and as many as it accepts in another one. All have random values.
func (t *trial) roundTrip(ctx context.Context) error {
	m := newMaker(t.options.Seed, templatePath)
	full := t.fullTemplate(m)
	s, err := t.create(ctx, t.field.in(t.base, full))
	if err != nil {
		return err
	}
	if err := t.arrives(ctx, s, full, t.isRequested); err != nil {
		return err
	}
	t.rejectParts(ctx, m, runtime.DeepCopyJSON(full))
	accepted := t.grow(ctx, m)
	t.ends["full"], t.ends["accepted"] = fromTemplate(byHand(full, "", "")), fromTemplate(byHand(accepted, "", ""))
	if err := s.change(ctx, t.field.in(t.base, accepted)); err != nil {
		return err
	}
	return t.arrives(ctx, s, accepted, t.isCreated)
}

// fullTemplate returns a template with random values of all fields, which a CronJob accepts and a Job does not.
func (t *trial) fullTemplate(m maker) map[string]any {
	full := maker{m.Rand, true}.object(t.field.schema)
	for _, path := range forbidden {
		unstructured.RemoveNestedField(full, strings.Split(path, ".")...)
	}
	spec := full["spec"].(map[string]any)
	spec["completionMode"], spec["podReplacementPolicy"] = "Indexed", "Failed" // beside all fields, no others are valid
	podSpec := at(spec, "template", "spec").(map[string]any)
	podSpec["restartPolicy"] = "Never"
	podSpec["containers"].([]any)[0].(map[string]any)["name"] = "Not-A-Name"
	return full
}

// arrives makes the CronJob due, and waits until the Job has what the template says.
func (t *trial) arrives(ctx context.Context, s *subject, template map[string]any,
	check func(context.Context, *subject, map[string]any) error) error {
	if err := once(ctx, s); err != nil {
		return err
	}
	t.result.Transitions++
	return s.Cluster.Until(ctx, func() error { return check(ctx, s, template) })
}

// isCreated compares the Job with the one that the API server makes of the same template by hand.
func (t *trial) isCreated(ctx context.Context, s *subject, template map[string]any) error {
	want := byHand(template, s.Name, objectName+"-byhand")
	if err := s.Cluster.ControlPlane.Client.Create(ctx, want, client.DryRunAll); err != nil {
		return err
	}
	made := s.Cluster.recorder.State(s.Name).Of(history.Jobs)
	if len(made) != 1 {
		return fmt.Errorf("there are %d Jobs, and one was due", len(made))
	}
	return compare(want, made[0])
}

// isRequested compares the Job that the operator has requested with the request for the same Job by hand: the API
// server drops fields that it does not know from the log, and others when it accepts a Job. The operator reports the
// refusal in the words that answer the Job by hand.
func (t *trial) isRequested(ctx context.Context, s *subject, template map[string]any) error {
	want, name := byHand(template, s.Name, objectName+"-byhand"), nameOfJob(s.dueTime())
	refusal := s.Cluster.ControlPlane.Client.Create(ctx, want.DeepCopy(), client.DryRunAll)
	if refusal == nil || !isRejection(refusal) {
		return fmt.Errorf("the Job must be refused: %w", refusal)
	}
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	_, reason, message := conditionOf(object, "Degraded")
	words := strings.ReplaceAll(refusal.Error(), want.GetName(), name)
	if reason != tutorialv1.ReasonRefused || !strings.Contains(message, words[:min(len(words), 800)]) {
		return fmt.Errorf("the Job is refused by Kubernetes (%w), and Degraded says %s: %s", refusal, reason, message)
	}
	requests := s.Cluster.ControlPlane.Audit.Since(s.begun, testenv.In(s.Name))
	requested, got := refusedJob(requests, want.GetName()), refusedJob(requests, name)
	if requested == nil || got == nil { // the API server may answer before it logs
		return errors.New("the audit log does not have both refused Jobs, the one by hand and the operator's")
	}
	return compare(requested, got)
}

// refusedJob returns the Job of a name that was requested and refused as invalid; nil if there was none.
func refusedJob(requests []testenv.Request, name string) *unstructured.Unstructured {
	for _, request := range requests {
		if request.Resource == "jobs" && request.Name == name && request.Refused != nil {
			return &unstructured.Unstructured{Object: decodeObject(string(request.Refused))}
		}
	}
	return nil
}

// rejectParts checks that a value of the wrong type is rejected by the name of its field, and so is any value of a
// field that must be left out.
func (t *trial) rejectParts(ctx context.Context, m maker, template map[string]any) {
	visit(templatePath, template, t.field.schema, func(path string, part map[string]any, name string, schema *props) {
		isForbidden := slices.Contains(forbidden, strings.TrimPrefix(path, templatePath+"."))
		hasFields := len(schema.Properties) > 0 || schema.Type == "array" && len(schema.Items.Schema.Properties) > 0
		if !isForbidden && (hasFields || t.options.isQuick() && m.IntN(shortShare) > 0) {
			return
		}
		before, wasSet := part[name]
		values := []any{wrongType(schema)}
		if isForbidden {
			values = append(values, maker{m.Rand, true}.value(schema))
		}
		for _, value := range values {
			part[name] = value
			if err := checkRejection(t.validate(ctx, t.kind.APIVersion(), template), []string{path}); err != nil {
				t.violated("%s: %v", path, err)
			}
			t.result.Rejections++
		}
		if part[name] = before; !wasSet {
			delete(part, name)
		}
	})
}

// grow returns a template with random values of all fields that Kubernetes accepts in the Job beside the others. The
// CronJob must accept what Kubernetes' own CronJob accepts.
func (t *trial) grow(ctx context.Context, m maker) map[string]any {
	template := runtime.DeepCopyJSON(t.base["jobTemplate"].(map[string]any))
	visit(templatePath, template, t.field.schema, func(path string, part map[string]any, name string, schema *props) {
		isForbidden := slices.Contains(forbidden, strings.TrimPrefix(path, templatePath+"."))
		if part[name] != nil || isForbidden || t.options.isQuick() && m.IntN(shortShare) > 0 {
			return
		}
		part[name] = m.value(schema)
		job := byHand(template, "default", objectName)
		if t.cluster.ControlPlane.Client.Create(ctx, job, client.DryRunAll) == nil {
			err := t.validate(ctx, t.kind.APIVersion(), template)
			if err == nil {
				return
			}
			if t.validate(ctx, "batch/v1", template) == nil {
				t.violated("Kubernetes accepts this template, and the CronJob does not: %v\n%v", err, template)
			}
		}
		delete(part, name)
	})
	return template
}

// validate has the API server validate a CronJob with a template: the operator's, or Kubernetes' own.
func (t *trial) validate(ctx context.Context, apiVersion string, template map[string]any) error {
	cronJob := byHand(map[string]any{"spec": map[string]any{"schedule": "@hourly", "jobTemplate": template}},
		"default", objectName)
	cronJob.SetAPIVersion(apiVersion)
	cronJob.SetKind("CronJob")
	return t.cluster.ControlPlane.Client.Create(ctx, cronJob, client.DryRunAll, client.FieldValidation("Strict"))
}

// byHand returns the Job that a template describes.
func byHand(template map[string]any, namespace, name string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(template)}
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetNamespace(namespace)
	job.SetName(name)
	return job
}

// compare compares what two Jobs have from their templates.
func compare(byHand, operators *unstructured.Unstructured) error {
	if diff := history.Diff(fromTemplate(byHand), fromTemplate(operators)); diff != "" {
		return errors.New("the Job is not what the template says (-by hand +the operator's):\n" + diff)
	}
	return nil
}

// fromTemplate returns what a Job has from its template.
func fromTemplate(job *unstructured.Unstructured) history.Normal {
	annotations := map[string]string{}
	maps.Copy(annotations, job.GetAnnotations())
	delete(annotations, child.OwnerAnnotation)
	delete(annotations, tutorialv1.ScheduledAtAnnotation)
	labels := map[string]string{}
	maps.Copy(labels, job.GetLabels())
	text, err := json.MarshalIndent([]any{labels, annotations, job.Object["spec"]}, "", " ")
	if err != nil {
		panic(err) // it was JSON before
	}
	own := []string{job.GetName(), "JOB"}
	if uid := string(job.GetUID()); uid != "" { // a refused Job has none
		own = append(own, uid, "UID")
	}
	return history.Normal{history.Jobs: strings.NewReplacer(own...).Replace(string(text))}
}
