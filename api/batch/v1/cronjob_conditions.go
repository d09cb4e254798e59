package v1

// Condition types of a CronJob. All of them are present from the first status on.
const (
	// ConditionAvailable says whether the next Job will be started when it is due.
	ConditionAvailable = "Available"
	// ConditionProgressing says whether Jobs are running, or are due and waiting.
	ConditionProgressing = "Progressing"
	// ConditionDegraded says whether somebody has to act.
	ConditionDegraded = "Degraded"
)

// Reasons of ConditionAvailable; when it is False because of the schedule, its reason is that of ConditionDegraded.
const (
	// ReasonScheduled (True): a Job is started whenever one is due.
	ReasonScheduled = "Scheduled"
	// ReasonSuspended (False): spec.suspend keeps Jobs from being started.
	ReasonSuspended = "Suspended"
	// ReasonNotObserved (Unknown): the Jobs could not be looked at; Degraded says why.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonJobsRunning (True): at least one Job is running.
	ReasonJobsRunning = "JobsRunning"
	// ReasonWaitingForJob (True): a Job is due, and waits for another one to finish as the concurrencyPolicy Forbid wants
	// it.
	ReasonWaitingForJob = "WaitingForJob"
	// ReasonIdle (False): no Job is running, and none is due.
	ReasonIdle = "Idle"
	// ReasonBlocked (False): nothing can be started before the cause that Degraded names is gone.
	ReasonBlocked = "Blocked"
)

// Reasons of ConditionDegraded, and of the Warning event that tells of it.
const (
	// ReasonAsExpected (False): nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonInvalidSchedule (True): spec.schedule has the right form and still means nothing, such as a range that ends
	// before it begins.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonUnknownTimeZone (True): there is no time zone with the name in spec.timeZone.
	ReasonUnknownTimeZone = "UnknownTimeZone"
	// ReasonNeverFires (True): no day is one of spec.schedule's, as with February 30.
	ReasonNeverFires = "NeverFires"
	// ReasonClockBehind (True): status.lastScheduleTime is in the future, so this clock, or the one that was used then, is
	// wrong.
	ReasonClockBehind = "ClockBehind"
	// ReasonNameTaken (True): a Job exists under the name of the one that is due, and is not this CronJob's own.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server refused a request; the message has its words. It is tried again.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed otherwise, such as by a time-out; the message says how. It is tried again.
	ReasonError = "Error"
	// ReasonNameShared (True): a CronJob of batch/v1 has the same name, and the controller of Kubernetes takes Jobs for
	// its own by that. It may delete those of this CronJob.
	ReasonNameShared = "NameShared"
	// ReasonLastRunFailed (True): the Job that finished last has failed. It stays so until one succeeds.
	ReasonLastRunFailed = "LastRunFailed"
)

// Reasons of events besides those of ConditionDegraded.
const (
	// EventSynced (Normal): a change of the CronJob is in effect.
	EventSynced = "Synced"
	// EventMissedSchedule (Warning): Jobs were due and have not been started, and will not be any more.
	EventMissedSchedule = "MissedSchedule"
)
