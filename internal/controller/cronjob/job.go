package cronjob

import (
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// job returns the Job of a CronJob for a scheduled time.
func job(cj *tutorialv1.CronJob, scheduled time.Time) *batchv1.Job {
	template := cj.Spec.JobTemplate.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, template.Annotations)
	annotations[tutorialv1.ScheduledAtAnnotation] = scheduled.UTC().Format(time.RFC3339)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   cj.Namespace,
			Name:        jobName(cj.Name, scheduled),
			Labels:      template.Labels,
			Annotations: annotations,
		},
		Spec: template.Spec,
	}
}
