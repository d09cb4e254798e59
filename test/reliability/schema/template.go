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

// In a quick run, one in shortShare fields of the template gets a value of the wrong type, or is added to the accepted
// template.
const shortShare = 30

// forbidden are the fields that a template must not set, because the operator or the API server sets them.
var forbidden = []string{"metadata.name", "metadata.namespace", "metadata.finalizers", "spec.selector",
	"spec.manualSelector"}

// visit calls do for the fields of a part of a template, and recursively for their fields. In a path, [0] is an element
// of a list.
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

// roundTrip tests that the whole template is copied to the Job. One template has all fields, and Kubernetes rejects its
// Job; another one has as many fields as Kubernetes accepts. The values are random.
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

// fullTemplate returns a template with random values of all fields, which is valid in a CronJob but not in a Job.
func (t *trial) fullTemplate(m maker) map[string]any {
	full := maker{m.Rand, true}.object(t.field.schema)
	for _, path := range forbidden {
		unstructured.RemoveNestedField(full, strings.Split(path, ".")...)
	}
	spec := full["spec"].(map[string]any)
	spec["completionMode"], spec["podReplacementPolicy"] = "Indexed", "Failed" // the only values valid with all fields set
	podSpec := at(spec, "template", "spec").(map[string]any)
	podSpec["restartPolicy"] = "Never"
	podSpec["containers"].([]any)[0].(map[string]any)["name"] = "Not-A-Name"
	return full
}

// arrives makes the CronJob due, and waits until the Job matches the template.
func (t *trial) arrives(ctx context.Context, s *subject, template map[string]any,
	check func(context.Context, *subject, map[string]any) error) error {
	if err := once(ctx, s); err != nil {
		return err
	}
	t.result.Transitions++
	return s.Cluster.Until(ctx, func() error { return check(ctx, s, template) })
}

// isCreated compares the Job with one that the test creates from the same template.
func (t *trial) isCreated(ctx context.Context, s *subject, template map[string]any) error {
	want := byHand(template, s.Name, objectName+"-byhand")
	if err := s.Cluster.ControlPlane.Client.Create(ctx, want, client.DryRunAll); err != nil {
		return err
	}
	created := s.Cluster.recorder.State(s.Name).Of(history.Jobs)
	if len(created) != 1 {
		return fmt.Errorf("there are %d Jobs, and one was due", len(created))
	}
	return compare(want, created[0])
}

// isRequested compares the operator's request to create a Job with the test's own request for the same Job. Both are
// read from the audit log: the API server drops unknown fields there, so the template itself may have more. Degraded
// must have the message with which the test's Job is rejected.
func (t *trial) isRequested(ctx context.Context, s *subject, template map[string]any) error {
	want, name := byHand(template, s.Name, objectName+"-byhand"), nameOfJob(s.dueTime())
	refusal := s.Cluster.ControlPlane.Client.Create(ctx, want.DeepCopy(), client.DryRunAll)
	if refusal == nil || !isRejection(refusal) {
		return fmt.Errorf("the API server must reject the Job, but returns: %w", refusal)
	}
	object, _, err := s.answered()
	if err != nil {
		return err
	}
	_, reason, message := conditionOf(object, "Degraded")
	words := strings.ReplaceAll(refusal.Error(), want.GetName(), name)
	if reason != tutorialv1.ReasonRefused || !strings.Contains(message, words[:min(len(words), 800)]) {
		return fmt.Errorf("the API server rejects the Job (%w), but Degraded is %s: %s", refusal, reason, message)
	}
	requests := s.Cluster.ControlPlane.Audit.Since(s.begun, testenv.In(s.Name))
	requested, got := refusedJob(requests, want.GetName()), refusedJob(requests, name)
	if requested == nil || got == nil { // the API server may answer before it writes the audit log
		return errors.New("the audit log does not have both rejected Jobs, the test's and the operator's")
	}
	return compare(requested, got)
}

// refusedJob returns the Job of a name whose creation was rejected as invalid; nil if there was none.
func refusedJob(requests []testenv.Request, name string) *unstructured.Unstructured {
	for _, request := range requests {
		if request.Resource == "jobs" && request.Name == name && request.Refused != nil {
			return &unstructured.Unstructured{Object: decodeObject(string(request.Refused))}
		}
	}
	return nil
}

// rejectParts checks that values of the wrong type, and all values of forbidden fields, are rejected with the name of
// the field.
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

// grow adds fields with random values to a minimal template, one after the other, and keeps those that Kubernetes
// accepts in a Job. The operator's CronJob must accept what Kubernetes' own CronJob accepts.
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
				t.violated("the batch/v1 CronJob accepts this template, but the operator's does not: %v\n%v", err, template)
			}
		}
		delete(part, name)
	})
	return template
}

// validate sends a dry-run request to create a CronJob with a template: the operator's, or Kubernetes' own.
func (t *trial) validate(ctx context.Context, apiVersion string, template map[string]any) error {
	cronJob := byHand(map[string]any{"spec": map[string]any{"schedule": "@hourly", "jobTemplate": template}},
		"default", objectName)
	cronJob.SetAPIVersion(apiVersion)
	cronJob.SetKind("CronJob")
	return t.cluster.ControlPlane.Client.Create(ctx, cronJob, client.DryRunAll, client.FieldValidation("Strict"))
}

// byHand returns the Job that a template describes, without the operator.
func byHand(template map[string]any, namespace, name string) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(template)}
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetNamespace(namespace)
	job.SetName(name)
	return job
}

// compare compares the parts of two Jobs that come from their templates.
func compare(byHand, operators *unstructured.Unstructured) error {
	if diff := history.Diff(fromTemplate(byHand), fromTemplate(operators)); diff != "" {
		return errors.New("the Job does not match the template (-by hand +the operator's):\n" + diff)
	}
	return nil
}

// fromTemplate returns the parts of a Job that come from its template.
func fromTemplate(job *unstructured.Unstructured) history.Normal {
	annotations := map[string]string{}
	maps.Copy(annotations, job.GetAnnotations())
	delete(annotations, child.OwnerAnnotation)
	delete(annotations, tutorialv1.ScheduledAtAnnotation)
	labels := map[string]string{}
	maps.Copy(labels, job.GetLabels())
	text, err := json.MarshalIndent([]any{labels, annotations, job.Object["spec"]}, "", " ")
	if err != nil {
		panic(err) // impossible: the object was decoded from JSON
	}
	own := []string{job.GetName(), "JOB"}
	if uid := string(job.GetUID()); uid != "" { // a rejected Job has none
		own = append(own, uid, "UID")
	}
	return history.Normal{history.Jobs: strings.NewReplacer(own...).Replace(string(text))}
}
