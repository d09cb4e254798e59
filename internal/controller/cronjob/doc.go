// Package cronjob reconciles CronJob: a Job is created at each time of a schedule.
//
// It guarantees:
//   - At most one Job for each scheduled time, regardless of retries and of the number of managers: the Job's name
//     contains the time, the API server accepts a name only once, and a Job is deleted from the history only after the
//     status has its time. There is one exception, which no controller can exclude: the manager dies between creating
//     the Job and writing the status, or does not receive the response to the first request, and the Job is deleted
//     before a manager observes it (kubectl delete, spec.jobTemplate.spec.ttlSecondsAfterFinished). That time runs
//     again if it is still the latest. A manager remembers its own writes until its cache shows them.
//   - Of the times that were missed, however many, the latest runs if its deadline has not passed; one event reports
//     the others.
//   - Nothing runs for a time before the CronJob was created, before its schedule or time zone was changed, or while it
//     was suspended.
//   - status.lastScheduleTime only moves forward, even if the clock is set back.
//   - Clock changes of a time zone neither skip nor repeat a run; [schedule.next] has the rule.
//   - A Job that has lost its owner reference (backup tools drop it) still counts, and gets the reference back.
//
// It never:
//   - writes a Job that the CronJob does not control, by the UID of its controller or, if it has none, by the
//     annotation with the owner's UID. If the name of such a Job is needed, Degraded reports it (reason NameTaken);
//   - reads the scheduled time of a Job from an annotation;
//   - makes a pass before the next scheduled time, except after events of the CronJob or its Jobs, a second after a run
//     to report it, when a Job becomes old enough to be deleted from the history, and when a deadline passes while a
//     run waits (Forbid);
//   - writes when nothing has changed.
//
// The built-in controller of batch/v1 matches Jobs to CronJobs by the name of the owner alone, whatever the owner's
// kind (observed up to Kubernetes 1.36, kubernetes#120181): a batch/v1 CronJob of the same name counts these Jobs as
// its own, and deletes them by its own history limits.
//
// One pass, from top to bottom of controller.go:
//
//	observe  the Jobs that the CronJob controls                  controller.go
//	decide   what runs, waits or is deleted, and the next pass   past.go, decide.go, schedule.go, names.go, job.go
//	apply    delete Jobs, restore owner references, create a Job controller.go
//	report   the status, whole and once, then the events         status.go
//
// A pass that creates a Job may end there: the Job triggers the pass that reports it. So when many CronJobs are due at
// the same time, all their Jobs are created before statuses are written. A status is written only over the version that
// the pass has read.
//
// Knowledge of the past comes from five sources, which pastOf in past.go merges:
//
//	source               what it knows                                     used
//	the status           up to when all times ran or were skipped,         always; after a stall and in a manager's first
//	                     since when the schedule counts                    minute, once the API server has confirmed it
//	names of the Jobs    which times have a Job                            unless the time is in the future
//	memory (past.go)     what this manager has decided and done            until the cache shows a status with it
//	recent writes        Jobs created, deleted or adopted just now         until the cache shows them; child.List and
//	(package child)                                                        child.Get include them already
//	stalls.go            since when no other manager can have created      for times since then; for earlier times, the
//	                     a Job                                             CronJob is read live first
package cronjob
