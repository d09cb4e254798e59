// Package schema tests every field of every spec, as the CustomResourceDefinitions declare them.
//
// A value of each class of a field (absent, default, bounds, enum values, invalid values) follows one of each other
// class on one resource:
//
//   - After a change between two accepted values, the cluster state equals that of a fresh resource with the second
//     value, except what history.Normalize and normal.go list. Where a field's documentation says that something stays
//     (spec.replicas of a Foo), the fresh resource is given that.
//   - A value that the operator cannot use is reported in the condition Degraded, by the name of its field.
//   - A rejected value is rejected by the name of its field, and changes nothing.
//
// The classes come from the schema and package kinds. What those cannot say (how a field takes effect, what its
// documentation promises) is in foo.go, memcached.go and cronjob.go. A field without an effect is a violation, and so
// is a write for a resource that has settled.
//
// The fields below spec.jobTemplate are copied to Jobs, so one randomized round trip covers them (template.go). No test
// waits for a schedule: CronJobs run hourly, and their status is changed so that the last hour has passed. Their Jobs
// name another controller in managedBy, so no controller runs them.
package schema
