package v1

// Condition types of a CronJob. All of them are present from the first status update on.
const (
	// ConditionAvailable reports whether the next Job will be created when it is due.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether Jobs are active, or due and waiting.
	ConditionProgressing = "Progressing"
	// ConditionDegraded reports whether someone has to act.
	ConditionDegraded = "Degraded"
)

// Reasons of ConditionAvailable; when it is False because of the schedule, its reason is that of ConditionDegraded.
const (
	// ReasonScheduled (True): a Job is created at each scheduled time.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended (False): spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonNotObserved (Unknown): the Jobs could not be observed; Degraded contains the reason.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonJobsRunning (True): at least one Job is active.
	ReasonJobsRunning = "JobsRunning"
	// ReasonWaitingForJob (True): a Job is due and waits for the active one to finish (concurrencyPolicy Forbid).
	ReasonWaitingForJob = "WaitingForJob"
	// ReasonIdle (False): no Job is active or due.
	ReasonIdle = "Idle"
	// ReasonBlocked (False): no Job can be created until the problem in Degraded is solved.
	ReasonBlocked = "Blocked"
)

// Reasons of ConditionDegraded. When it is True, a Warning event has the same reason.
const (
	// ReasonAsExpected (False): there is no problem.
	ReasonAsExpected = "AsExpected"
	// ReasonInvalidSchedule (True): spec.schedule is well-formed but impossible, such as a range that ends before it
	// begins.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonUnknownTimeZone (True): there is no time zone named spec.timeZone.
	ReasonUnknownTimeZone = "UnknownTimeZone"
	// ReasonNeverFires (True): no date matches spec.schedule, such as February 30.
	ReasonNeverFires = "NeverFires"
	// ReasonClockBehind (True): status.lastScheduleTime is in the future, so this clock is wrong, or the one that
	// was used then was.
	ReasonClockBehind = "ClockBehind"
	// ReasonNameTaken (True): a Job with the name of the one that is due exists, and this CronJob does not control it.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server rejected a request; the message contains its error. The request is retried.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed otherwise, for example by a timeout; the message contains the error. It is
	// retried.
	ReasonError = "Error"
	// ReasonNameShared (True): a CronJob of batch/v1 has the same name. The controller of Kubernetes matches Jobs by that
	// name and may delete those of this CronJob.
	ReasonNameShared = "NameShared"
	// ReasonLastRunFailed (True): the Job that finished last failed. It stays True until a Job succeeds.
	ReasonLastRunFailed = "LastRunFailed"
)

// Other reasons of events.
const (
	// EventSynced (Normal): a change of the spec was applied.
	EventSynced = "Synced"
	// EventStatusNotWritten (Warning): the API server rejects the status, so the status is not up to date.
	EventStatusNotWritten = "StatusNotWritten"
	// EventMissedSchedule (Warning): scheduled times were skipped and will not run.
	EventMissedSchedule = "MissedSchedule"
)
