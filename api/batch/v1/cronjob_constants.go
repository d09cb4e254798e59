package v1

// ScheduledAtAnnotation of a Job tells people the time it is of, as RFC 3339 has it. The operator itself goes by the
// Job's name.
const ScheduledAtAnnotation = "batch.tutorial.kubebuilder.io/scheduled-at"

// How many finished Jobs are kept where the spec does not say; the API server fills that in.
const (
	DefaultSuccessfulJobsHistoryLimit = 3
	DefaultFailedJobsHistoryLimit     = 1
)
