// Package foo reconciles Foo: a Deployment of nginx whose name and size the Foo decides.
//
// It promises:
//   - A Deployment named spec.deploymentName in the Foo's namespace, with spec.replicas pods. Without spec.replicas the
//     count is left to others; a new Deployment then starts with 1.
//   - What it has set is put back when somebody changes it; what others have added stays.
//   - A new deploymentName moves the Foo there: the Deployment under the new name is made, then the old one is deleted.
//     Two Foos may swap names. As long as it cannot be had, the old one is kept as the Foo says.
//   - The status is true: it counts what the Deployment reports, and its conditions say what is wrong and what to do.
//
// It never:
//   - touches a Deployment that is not the Foo's, by the UID of its controller. It says so (condition Degraded, reason
//     NameTaken, event ErrResourceExists) and heals by itself when the name is free;
//   - deletes the Deployment it has for one that it cannot get, but for a swap, in which somebody has to let go first;
//   - writes when nothing has changed.
//
// One pass, from top to bottom of controller.go:
//
//	look    the Deployment of that name, and those that are the Foo's     controller.go
//	decide  whether the name is free, and what the Deployment should be   names.go, deployment.go
//	act     apply the one, delete or keep those under older names         controller.go
//	tell    the status, whole and once, then the event                    status.go
package foo
