package cronjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
	"github.com/example/memcached-operator/internal/golden"
)

func TestGoldenJob(t *testing.T) {
	for _, test := range []struct {
		name, file string
		tick       string
		golden     string
	}{
		{"as few fields as possible", "minimal", "09:00", "minimal"},
		{"all fields, a time within a minute", "full", "09:00:20", "full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var cj tutorialv1.CronJob
			golden.Read(t, test.file, &cj)
			golden.Check(t, test.golden, job(&cj, moment(test.tick)))
		})
	}
}

func TestJobHasItsTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name       string
		tick       time.Time
		job, wants string
	}{
		{"of a full minute", moment("09:00"), "c-29540700", "2026-03-02T09:00:00Z"},
		{"of a second", moment("09:00:20"), "c-1772442020", "2026-03-02T09:00:20Z"},
		{"in any time zone", moment("09:00").In(berlin), "c-29540700", "2026-03-02T09:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := job(hourly().cj, test.tick)
			if got.Name != test.job || got.Namespace != "default" {
				t.Errorf("it is %s/%s; want default/%s", got.Namespace, got.Name, test.job)
			}
			if actual := got.Annotations[tutorialv1.ScheduledAtAnnotation]; actual != test.wants {
				t.Errorf("the annotation is %s; want %s", actual, test.wants)
			}
			if tick, ok := scheduledTime("c", got.Name); !ok || !tick.Equal(test.tick) {
				t.Errorf("its name is read as %s", tick)
			}
		})
	}
}

// Objects in the cache must not change when the Job that is made from them does: package child and the client fill in
// fields.
func TestJobSharesNothing(t *testing.T) {
	for _, file := range []string{"minimal", "full"} {
		t.Run(file, func(t *testing.T) {
			var cj tutorialv1.CronJob
			golden.Read(t, file, &cj)
			before := cj.DeepCopy()
			got := job(&cj, moment("09:00"))
			if !equality.Semantic.DeepEqual(got.Spec, before.Spec.JobTemplate.Spec) ||
				!equality.Semantic.DeepEqual(got.Labels, before.Spec.JobTemplate.Labels) {
				t.Errorf("it differs from the template: %+v", got)
			}
			spoil(got)
			if !equality.Semantic.DeepEqual(&cj, before) {
				t.Errorf("a change of the Job has changed its template:\n%+v", cj.Spec.JobTemplate)
			}
		})
	}
}

func spoil(job *batchv1.Job) {
	for _, meta := range []*metav1.ObjectMeta{&job.ObjectMeta, &job.Spec.Template.ObjectMeta} {
		for key := range meta.Labels {
			meta.Labels[key] = "spoilt"
		}
		for key := range meta.Annotations {
			meta.Annotations[key] = "spoilt"
		}
	}
	for _, number := range []*int32{job.Spec.Parallelism, job.Spec.Completions} {
		if number != nil {
			*number = 99
		}
	}
	container := &job.Spec.Template.Spec.Containers[0]
	container.Image = "spoilt"
	for i := range container.Command {
		container.Command[i] = "spoilt"
	}
	for i := range container.Env {
		container.Env[i].Value = "spoilt"
	}
	if policy := job.Spec.PodFailurePolicy; policy != nil {
		policy.Rules[0].OnExitCodes.Values[0] = 99
	}
}
