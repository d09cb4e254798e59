package v1

// ScheduledAtAnnotation of a Job has its scheduled time in the format of RFC 3339, for people. The operator itself
// reads the time from the Job's name.
const ScheduledAtAnnotation = "batch.tutorial.kubebuilder.io/scheduled-at"

// Defaults of the history limits, which the API server sets.
const (
	DefaultSuccessfulJobsHistoryLimit = 3
	DefaultFailedJobsHistoryLimit     = 1
)
