// Package memcached reconciles Memcached: a number of memcached nodes, one pod each, and a Service that lists them.
//
// It guarantees:
//   - A Deployment or StatefulSet of the Memcached's name with spec.size nodes, a headless Service for discovery by
//     DNS, and a PodDisruptionBudget that allows the eviction of one node at a time. A StatefulSet has a second
//     Service, which gives its nodes their names.
//   - A Memcached that sets only spec.size has the pods of release 0.2.0, so that upgrades restart nothing.
//   - status.nodes are the names of exactly the pods that are its nodes: found by their controllers, not by labels, so
//     neither the pods of another Memcached nor a stray pod are ever among them, nor pods that are being deleted. It is
//     written at once when it is complete, and rate-limited while nodes come and go.
//   - When a node terminates, the condition Degraded has the end of its output, and the field to change if it is one.
//   - A spec whose fields contradict each other changes nothing (condition Degraded, reason InvalidSpec).
//   - What the operator has set is restored when another writer changes it; what other writers have added stays.
//
// It never:
//   - restarts a node for a change of the size, nor stops more than one node at a time for any other change;
//   - writes an object that the Memcached does not control (condition Degraded, reason NameTaken); it writes
//     its other children;
//   - writes when nothing has changed.
//
// One pass, from top to bottom of controller.go:
//
//	observe  the children and the pods                      controller.go, pods.go
//	decide   defaults, and the memory that a node needs     settings.go, invalid.go
//	         the desired children                           names.go, command.go, podtemplate.go, deployment.go,
//	                                                        statefulset.go, service.go, poddisruptionbudget.go
//	         the state of the rollout                       rollout.go, shortage.go
//	apply    write the children                             controller.go, workload.go
//	report   the status, whole and once, then the event     status.go, remedies.go
package memcached
