package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/child"
	"github.com/example/memcached-operator/test/reliability/history"
	"github.com/example/memcached-operator/test/testenv"
)

// fieldsPerTemplate is how many fields one template has besides what it requires.
const fieldsPerTemplate = 12

// forbidden are the fields of a template that must be left out, because Jobs get their own.
var forbidden = []string{".metadata.name", ".metadata.namespace", ".metadata.finalizers", ".spec.selector",
	".spec.manualSelector"}

// RoundTrip is what the round trip of spec.jobTemplate has found.
type RoundTrip struct {
	Fields      int      // that templates may have
	Arrived     int      // those that a Job had from its template
	Requested   int      // those that a Job would have had which Kubernetes refused
	Forbidden   int      // those that must be left out
	Dropped     []string // those that the API server drops from a Job by hand, too
	Untested    []string // those that no template had which the API server accepts for a CronJob
	Templates   int
	Rejections  int // of a value of the wrong type, or of a field that must be left out
	RestWindows int
	RestWrites  []string `json:",omitempty"`
	Violations  []string `json:",omitempty"`
}

// roundTrip tests that everything in a template arrives in the Job. Each field is in some template, with random values
// and beside random other fields.
type roundTrip struct {
	world *World
	kind  *Kind

	mu                       sync.Mutex
	sent, arrived, requested map[string]bool // paths of fields
	result                   RoundTrip
}

// tryTemplates tests templates with all the fields.
func (w *World) tryTemplates(ctx context.Context, kind *Kind, fields []Field) RoundTrip {
	r := &roundTrip{world: w, kind: kind, sent: map[string]bool{}, arrived: map[string]bool{},
		requested: map[string]bool{}}
	r.result.Fields = len(fields)
	var group sync.WaitGroup
	free := make(chan struct{}, workers)
	for chunk := range slices.Chunk(fields, fieldsPerTemplate) {
		free <- struct{}{}
		group.Go(func() {
			if err := r.try(ctx, chunk); err != nil {
				r.violated("%v", err)
			}
			<-free
		})
	}
	group.Wait()
	for _, field := range fields {
		switch path := field.Path; {
		case r.arrived[path]:
			r.result.Arrived++
		case r.requested[path]:
			r.result.Requested++
		case r.sent[path]:
			r.result.Dropped = append(r.result.Dropped, path)
		case !field.isForbidden():
			r.result.Untested = append(r.result.Untested, path)
		}
	}
	return r.result
}

func (r *roundTrip) violated(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Violations = append(r.result.Violations, fmt.Sprintf(format, args...))
}

// try tests one template that the API server accepts, and then, on the same CronJob, one with all the fields that it
// refuses.
func (r *roundTrip) try(ctx context.Context, fields []Field) error {
	m := newMaker(r.world.options.Seed, fields[0].Path)
	accepted, fitted, misfits := jobTemplate(), []Field{}, []Field{}
	for _, field := range fields {
		r.reject(ctx, m, field)
		if field.isForbidden() {
			continue
		}
		if template := r.fit(ctx, m, accepted, append(fitted, field), false); template != nil {
			accepted, fitted = template, append(fitted, field)
		} else {
			misfits = append(misfits, field)
		}
	}
	// The API server drops what it does not know of accepted Jobs only, so the refused one has these fields, too.
	refused := runtime.DeepCopyJSON(accepted)
	podSpec := at(refused, "spec", "template", "spec").(map[string]any)
	podSpec["containers"].([]any)[0].(map[string]any)["name"] = "Not-A-Name"
	for _, field := range misfits {
		if template := r.fit(ctx, m, refused, append(fitted, field), true); template != nil {
			refused, fitted = template, append(fitted, field)
		}
	}
	spec := func(template map[string]any) map[string]any {
		return map[string]any{"schedule": "@every 1h", "jobTemplate": template}
	}
	s, err := r.world.create(ctx, r.kind, spec(accepted), 0)
	if err != nil {
		return err
	}
	defer func() { _ = s.delete(ctx) }()
	if err := r.arrives(ctx, s, accepted, fields); err != nil {
		return err
	}
	if !r.world.options.IsHasty && !r.world.options.Short && m.IntN(restShare) == 0 {
		writes := r.world.SettledWrites(ctx, s.namespace, restWindow)
		r.mu.Lock()
		r.result.RestWindows, r.result.RestWrites = r.result.RestWindows+1, append(r.result.RestWrites, writes...)
		r.mu.Unlock()
	}
	if err := s.change(ctx, spec(refused)); err != nil {
		return err
	}
	return r.arrives(ctx, s, refused, fields)
}

// arrives makes the CronJob due, and compares the Job with the one that the API server makes of the same template by
// hand. If it refuses that, the operator must have requested all of it, and must report the refusal in the same words.
func (r *roundTrip) arrives(ctx context.Context, s *subject, template map[string]any, fields []Field) error {
	if err := once(ctx, s); err != nil {
		return err
	}
	want := byHand(template, s.namespace, objectName+"-byhand")
	refusal := r.world.ControlPlane.Client.Create(ctx, want, client.DryRunAll)
	if refusal != nil && !isRejection(refusal) {
		return refusal
	}
	shown := r.arrived
	check := func() (err error) {
		made := r.world.recorder.World(s.namespace).Of(history.Jobs)
		if len(made) != 1 {
			return fmt.Errorf("there are %d Jobs, and one was due", len(made))
		}
		return compare(want, made[0])
	}
	if refusal != nil {
		shown = r.requested
		check = func() error {
			object, _, err := s.answered()
			if err != nil {
				return err
			}
			_, reason, message := conditionOf(object, "Degraded")
			words := strings.ReplaceAll(refusal.Error(), want.GetName(), nameOfJob(s.tick()))
			if reason != tutorialv1.ReasonRefused || !strings.Contains(message, words[:min(len(words), 800)]) {
				return fmt.Errorf("the Job is refused by Kubernetes (%w), and Degraded says %s: %s", refusal, reason, message)
			}
			// The API server may answer before it logs.
			requests := r.world.ControlPlane.Audit.Since(s.begun, testenv.In(s.namespace))
			requested, got := refusedJob(requests, want.GetName()), refusedJob(requests, nameOfJob(s.tick()))
			if requested == nil || got == nil {
				return errors.New("the audit log does not have both refused Jobs, that by hand and the operator's")
			}
			want.Object = requested.Object
			return compare(requested, got)
		}
	}
	if err := r.world.until(ctx, check); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Templates++
	for _, field := range fields {
		r.sent[field.Path] = r.sent[field.Path] || has(template, field.steps(templatePath))
		shown[field.Path] = shown[field.Path] || has(want.Object, field.steps(templatePath))
	}
	return nil
}

// reject checks that a value of the wrong type, and any value of a field that must be left out, is rejected by the name
// of the field.
func (r *roundTrip) reject(ctx context.Context, m maker, field Field) {
	values := []any{field.wrongType()}
	paths := []string{strings.ReplaceAll(field.Path, "[]", "[0]")}
	if field.isForbidden() {
		value := m.value(field.schema)
		if value == false {
			value = true // false is the same as left out
		}
		values, paths = append(values, value), append(paths, templatePath)
		r.mu.Lock()
		r.result.Forbidden++
		r.mu.Unlock()
	}
	for i, value := range values {
		template := jobTemplate()
		m.put(template, r.schema(), field.steps(templatePath), value, false)
		err := r.validateCronJob(ctx, template)
		switch {
		case err == nil:
			r.violated("%s: %v is accepted", field.Path, value)
		case !isRejection(err) || !strings.Contains(err.Error(), paths[i]):
			r.violated("%s: the rejection of %v does not name %s: %v", field.Path, value, paths[i], err)
		}
		r.mu.Lock()
		r.result.Rejections++
		r.mu.Unlock()
	}
}

func (f Field) isForbidden() bool {
	return slices.ContainsFunc(forbidden, func(path string) bool { return strings.HasPrefix(f.Path, templatePath+path) })
}

func (r *roundTrip) schema() *props {
	schema := r.kind.spec.Properties["jobTemplate"]
	return &schema
}

// validate has the API server validate a Job of a template, and a CronJob with it. A template that Kubernetes' own
// CronJobs take, too, must be accepted.
func (r *roundTrip) validate(ctx context.Context, template map[string]any) error {
	api := r.world.ControlPlane.Client
	if err := api.Create(ctx, byHand(template, "default", objectName), client.DryRunAll); err != nil {
		return err
	}
	err := r.validateCronJob(ctx, template)
	if err == nil {
		return nil
	}
	theirs := cronJobOf("batch/v1", "CronJob", template)
	theirs.Object["spec"].(map[string]any)["schedule"] = "@hourly"
	if api.Create(ctx, theirs, client.DryRunAll) == nil {
		r.violated("Kubernetes accepts this template, and the CronJob does not: %v\n%s", err, indented(template))
	}
	return err
}

func (r *roundTrip) validateCronJob(ctx context.Context, template map[string]any) error {
	cronJob := cronJobOf(r.kind.APIVersion, r.kind.Name, template)
	return r.world.ControlPlane.Client.Create(ctx, cronJob, client.DryRunAll, client.FieldValidation("Strict"))
}

func cronJobOf(apiVersion, kind string, template map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"schedule": "@every 1h", "jobTemplate": template}
	cronJob := byHand(map[string]any{"spec": spec}, "default", objectName)
	cronJob.SetAPIVersion(apiVersion)
	cronJob.SetKind(kind)
	return cronJob
}

// fit returns a template with the last of some fields besides the others; nil if it finds none. It starts with random
// values and mends what the API server objects to, several times from the beginning. Kubernetes may refuse the Job only
// of a refused template.
func (r *roundTrip) fit(ctx context.Context, m maker, template map[string]any, fields []Field,
	isRefused bool) map[string]any {
	field := fields[len(fields)-1]
	isLost := func(template map[string]any) bool {
		return slices.ContainsFunc(fields, func(field Field) bool { return !has(template, field.steps(templatePath)) })
	}
	for attempt := range 6 {
		value := m.value(field.schema)
		if value == false && attempt < 4 {
			value = true // false is often the same as left out
		}
		candidate := runtime.DeepCopyJSON(template)
		m.put(candidate, r.schema(), field.steps(templatePath), value, attempt%2 == 1)
		for range 8 {
			if isLost(candidate) {
				break
			}
			err := r.validate(ctx, candidate)
			if isRefused && !isOfCronJob(err) {
				// What the Job lacks is mended, but it need not be valid.
				for _, cause := range causesOf(err) {
					if cause.Type == metav1.CauseTypeFieldValueRequired {
						m.mend(candidate, r.schema(), cause)
					}
				}
				err = r.validateCronJob(ctx, candidate)
			}
			if err == nil && !isLost(candidate) {
				return candidate
			}
			for _, cause := range causesOf(err) {
				m.mend(candidate, r.schema(), cause)
			}
		}
	}
	return nil
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}

// isOfCronJob returns whether an error is about a CronJob and not about its Job.
func isOfCronJob(err error) bool {
	return slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return strings.HasPrefix(cause.Field, templatePath)
	})
}

var (
	pathSteps = regexp.MustCompile(`[^.\[\]]+`)
	quoted    = regexp.MustCompile(`"([^"]*)"`)
)

// mend changes the field that the API server objects to: it sets what is required, takes one of the supported values,
// removes what is forbidden, and chooses another value of anything else.
func (m maker) mend(template map[string]any, schema *props, cause metav1.StatusCause) {
	object, name, schema, ok := place(template, schema, cause.Field)
	if !ok {
		return
	}
	_, supported, _ := strings.Cut(cause.Message, "supported values: ")
	words := quoted.FindAllStringSubmatch(supported, -1)
	inner, isObject := object[name].(map[string]any)
	switch {
	case name == "": // an element of a list
		m.grow(object, schema)
	case len(words) > 0:
		object[name] = pick(m, words)[1]
	case cause.Type == metav1.CauseTypeForbidden:
		delete(object, name)
	case isObject && len(schema.Properties) > 0:
		m.grow(inner, schema)
	default:
		object[name] = m.value(schema)
	}
}

// place finds a field of a template by the path that the API server names: the object that has it, its name there, ""
// if that object is itself the element of a list that is named, and its schema.
func place(template map[string]any, schema *props, field string) (
	object map[string]any, name string, of *props, isFound bool,
) {
	steps := pathSteps.FindAllString(strings.TrimPrefix(field, templatePath+"."), -1)
	object = template
	for i := 0; i < len(steps) && len(schema.Properties) > 0; i++ {
		property, ok := schema.Properties[steps[i]]
		if inner, isObject := object[name].(map[string]any); isObject {
			object = inner
		} else if name != "" {
			return nil, "", nil, false
		}
		if !ok {
			return nil, "", nil, false // a field that a template does not have
		}
		name, schema = steps[i], &property
		elements, _ := object[name].([]any)
		if i+1 == len(steps) || property.Type != "array" || len(property.Items.Schema.Properties) == 0 {
			continue
		}
		i++
		index, err := strconv.Atoi(steps[i])
		if err != nil || index >= len(elements) {
			return nil, "", nil, false
		}
		object, name, schema = elements[index].(map[string]any), "", property.Items.Schema
	}
	return object, name, schema, true
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

// refusedJob returns the Job of a name that was to be created and was refused as invalid; nil if there was none.
func refusedJob(requests []testenv.Request, name string) *unstructured.Unstructured {
	for _, request := range requests {
		if request.Resource == "jobs" && request.Name == name && request.Refused != nil {
			return &unstructured.Unstructured{Object: decodeObject(string(request.Refused))}
		}
	}
	return nil
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
	own := []string{job.GetName(), "JOB"}
	if uid := string(job.GetUID()); uid != "" { // a refused Job has none
		own = append(own, uid, "UID")
	}
	text := indented(map[string]any{"labels": labels, "annotations": annotations, "spec": job.Object["spec"]})
	return history.Normal{history.Jobs: strings.NewReplacer(own...).Replace(text)}
}
