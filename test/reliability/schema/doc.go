// Package schema tests every field of every spec, as the CustomResourceDefinitions declare them.
//
// The values of a field are divided into classes: absent, default, bounds, enum values, invalid values. On one
// resource, the field is changed from each class to each other one:
//
//   - After a change between two accepted values, the cluster state equals that of a fresh resource with the second
//     value, except for what history.Normalize and normal.go remove. Where removing a field keeps the effect of its
//     last value, as documented for spec.replicas of a Foo, the fresh resource gets that value.
//   - A value that the operator cannot use is reported in the condition Degraded, with the name of its field.
//   - The rejection of an invalid value names its field, and nothing changes.
//
// The classes come from the schema and package kinds. What these do not contain (how a field takes effect, what its
// documentation promises) is in foo.go, memcached.go and cronjob.go. A field without an effect is a violation, and so
// is a write for a settled resource.
//
// The fields below spec.jobTemplate are copied to Jobs, so one randomized round trip covers them (template.go). No test
// waits for a schedule: CronJobs run hourly, and the test sets their status so that a run is due. Their Jobs name
// another controller in managedBy, so no controller runs them.
package schema
