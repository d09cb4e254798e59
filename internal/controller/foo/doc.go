// Package foo reconciles Foo: a Deployment of nginx whose name and number of pods the Foo specifies.
//
// It guarantees:
//   - A Deployment named spec.deploymentName in the Foo's namespace, with spec.replicas pods. Without spec.replicas the
//     count is left to other writers, such as an autoscaler; a new Deployment starts with 1.
//   - What the operator has set is restored when another writer changes it; what other writers have added stays.
//   - A new deploymentName moves the Foo there: the Deployment under the new name is created, then the old one is
//     deleted. Two Foos may swap names. While the new name is taken, the old Deployment is kept and follows the spec.
//   - The status has the counts that the Deployment reports; the conditions report problems and their remedies.
//
// It never:
//   - writes a Deployment that the Foo does not control, by the UID of its controller. It reports it (condition
//     Degraded, reason NameTaken, event ErrResourceExists) and continues when the name is free;
//   - deletes its Deployment while the new name is taken, except in a swap, in which one Foo has to delete first;
//   - writes when nothing has changed.
//
// One pass, from top to bottom of controller.go:
//
//	observe  the Deployment of that name, and those that the Foo controls    controller.go
//	decide   the desired Deployment, and whether to keep former ones         names.go, deployment.go
//	apply    write the one, delete or keep the former ones                   controller.go
//	report   the status, whole and once, then the event                      status.go
package foo
