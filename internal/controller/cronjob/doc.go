// Package cronjob reconciles CronJob: a Job made at each time of a schedule.
//
// It promises:
//   - At most one Job ever for a time of a CronJob, however often and by however many managers it is tried: the Job's
//     name says the time, the API server takes a name once, and a Job is deleted from the history only when the status
//     remembers its time. One thing no controller can tell from a Job that was never made: a Job whose time is not in
//     the status yet, because the manager has died between the two writes or has not got the answer to the first, and
//     that is gone before a manager looks (kubectl delete, spec.jobTemplate.spec.ttlSecondsAfterFinished). That time is
//     run again, if it is still the latest. What a manager knows to have done, it does not forget before its cache
//     shows it.
//   - Of the times that nobody has run, however many, the latest runs if its deadline has not passed; the others are
//     told once.
//   - Nothing runs for a time before the CronJob was made, before its schedule or time zone was changed, or while it
//     was suspended.
//   - status.lastScheduleTime only moves forward, also when the clock does not.
//   - With a time zone, clocks that change make a time run neither never nor twice; the rule is at [schedule.next].
//
// It never:
//   - touches a Job that is not the CronJob's, by the UID of its controller. It says so (condition Degraded, reason
//     NameTaken);
//   - believes what a Job says of its time in an annotation;
//   - wakes up before the next time, but for what happens to the CronJob or its Jobs, a second after a run to tell of
//     it, for a Job that may then be deleted from the history, and for a deadline that passes while Forbid waits;
//   - writes when nothing has changed.
//
// The built-in controller of batch/v1 takes Jobs for those of its own CronJob by the owner's name alone, whatever its
// kind (seen up to Kubernetes 1.36, issue #120181): a CronJob of that kind and the same name counts these Jobs as its
// own, and deletes them by its own history limits.
//
// One pass, from top to bottom of controller.go:
//
//	look    the Jobs that are the CronJob's                               controller.go
//	decide  what runs, what waits, what goes, when to look again          decide.go, schedule.go, names.go, job.go
//	act     delete what goes, make the Job that is due                    controller.go
//	tell    the status, whole and once, then the events                   status.go
//
// A pass that makes a Job may end there: the Job makes the pass that tells of it, so that when many CronJobs are due at
// the same time, all are run before anything is told. What the status does not say yet is in memory.go. Whether another
// manager may have run something meanwhile, vigil.go knows; then the API server is asked first. A status is never
// written over one that was not seen.
package cronjob
