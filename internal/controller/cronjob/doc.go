// Package cronjob reconciles CronJob: a Job is created at each time of a schedule.
//
// It promises:
//   - At most one Job ever for a time of a CronJob, however often and by however many managers it is tried: the Job's
//     name has the time, the API server takes a name once, and a Job is deleted from the history only when the status
//     has its time. One case no controller can tell from a Job that was never created: a Job whose time is not in the
//     status yet, because the manager has died between the two writes or has not got the answer to the first, and that
//     is deleted before a manager reads it (kubectl delete, spec.jobTemplate.spec.ttlSecondsAfterFinished). That time
//     is run again, if it is still the latest. What a manager knows to have done, it does not forget before its cache
//     shows it.
//   - Of the times that have not run, however many, the latest runs if its deadline has not passed; one event reports
//     the others.
//   - Nothing runs for a time before the CronJob was created, before its schedule or time zone was changed, or while it
//     was suspended.
//   - status.lastScheduleTime only moves forward, also when the clock does not.
//   - With a time zone, clocks that change make a time run neither never nor twice; the rule is at [schedule.next].
//   - A Job that has lost its owner reference (backup tools drop it) still counts, and gets the reference back.
//
// It never:
//   - touches a Job that is not the CronJob's, by the UID of its controller or, without one, by our annotation.
//     The condition Degraded reports such a Job where its name is needed (reason NameTaken);
//   - believes what a Job says of its time in an annotation;
//   - makes a pass before the next time, except after events of the CronJob or its Jobs, a second after a run to report
//     it, for a Job that may then be deleted from the history, and for a deadline that passes while Forbid waits;
//   - writes when nothing has changed.
//
// The built-in controller of batch/v1 takes Jobs for those of its own CronJob by the owner's name alone, whatever its
// kind (seen up to Kubernetes 1.36, issue #120181): a CronJob of that kind and the same name counts these Jobs as its
// own, and deletes them by its own history limits.
//
// One pass, from top to bottom of controller.go:
//
//	observe  the Jobs that are the CronJob's                            controller.go
//	decide   what runs, waits and goes, when to look again              past.go, decide.go, schedule.go, names.go, job.go
//	apply    delete what goes, adopt what lost its owner, create a Job  controller.go
//	report   the status, whole and once, then the events                status.go
//
// A pass that creates a Job may end there: the Job triggers the pass that reports it, so that when many CronJobs are
// due at the same time, all run before anything is reported. A status is never written over one that was not read.
//
// What is known of the past comes from five sources, which pastOf in past.go merges:
//
//	source               what it knows                                     believed
//	the status           up to when all times have run or were given up,   always; after a stall and in a manager's first
//	                     since when the schedule counts                    minute, once the API server has confirmed it
//	names of the Jobs    which times have a Job                            unless the time is yet to come
//	memory (past.go)     what this manager has decided and done            until the cache shows a status that says so
//	recent writes        Jobs created, deleted or adopted a moment ago     until the cache shows them; child.List and
//	(package child)                                                        child.Get have them merged already
//	stalls.go            since when no other manager can have created      for times since then; for earlier ones the API
//	                     a Job                                             server is asked first
package cronjob
