// Package memcached reconciles Memcached: a number of memcached nodes, one pod each, and where to find them.
//
// It promises:
//   - A Deployment of the Memcached's name with spec.size nodes, a headless Service for discovery by DNS, and a
//     PodDisruptionBudget that lets one node go at a time.
//   - status.nodes are the names of exactly the pods that are its nodes: found by who owns them, not by labels, so neither
//     the pods of another Memcached nor a stray pod are ever among them. It is written at once when it is complete,
//     and spaced out while nodes come and go.
//   - When a node dies, the condition Degraded carries what it said last.
//   - What it has set is put back when somebody changes it; what others have added stays.
//
// It never:
//   - restarts a node for a change of the size, nor takes more than one node away at a time for any other change;
//   - touches an object that is not the Memcached's (condition Degraded, reason NameTaken), and makes what it can beside it;
//   - writes when nothing has changed.
//
// One pass, from top to bottom of controller.go:
//
//	look    the children and the pods                           controller.go, pods.go
//	decide  what the children should be                         names.go, deployment.go, service.go, poddisruptionbudget.go
//	act     apply the children                                  controller.go
//	tell    the status, whole and once, then the event          status.go
package memcached
