// Package schema tries every field of every spec, as the CustomResourceDefinitions declare them. A value of each class that a field has
// (left out, the default, bounds, words, what is not legal) follows one of each other class on one resource:
//
//   - from a value that the API server takes to another one, the world becomes what it is for a fresh resource that has the second from the
//     start, down to every field of every object and of the status but for those that the server makes (history.Normalize lists them) and
//     those in normal.go; where the documentation of a field says that something stays from before (spec.replicas of a Foo), the fresh
//     resource is given that;
//   - a value that the API server takes and the operator cannot work with is told in the condition Degraded, by the name of its field, and
//     leaves what there is as it is;
//   - a value that is refused is refused by the name of its field, and changes nothing.
//
// A fresh resource is compared with what its documentation says (expect.go), and what a CronJob hands on to its Jobs with the Job that the API
// server makes of the same template by hand: what that would refuse has to be told, in the same words, and what the operator has asked for
// has to be what was asked for by hand. A field that shows in nothing is a violation. So is a write of the operator at rest (rest.go).
//
// The fields below spec.jobTemplate are Kubernetes' own, so they have four classes: left out, two values, and a wrong type. When one is due is
// not waited for: CronJobs run every hour and are told that the hour before has passed. Their Jobs name another controller, so nobody works on them.
package schema
