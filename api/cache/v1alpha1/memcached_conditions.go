package v1alpha1

// Condition types of a Memcached. All of them are present from the first status on.
const (
	// ConditionAvailable reports whether at least one node is ready.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether the children are still changing toward the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded reports whether someone has to act.
	ConditionDegraded = "Degraded"
)

// Reasons of ConditionAvailable.
const (
	// ReasonAllNodesReady (True): the desired number of nodes is ready.
	ReasonAllNodesReady = "AllNodesReady"
	// ReasonSomeNodesReady (True): at least one node is ready, but fewer than desired.
	ReasonSomeNodesReady = "SomeNodesReady"
	// ReasonScaledToZero (True): spec.size is 0.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonNoNodesReady (False): no node is ready.
	ReasonNoNodesReady = "NoNodesReady"
	// ReasonNotObserved (Unknown): the nodes could not be observed; Degraded contains the reason.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonRolloutComplete (False): all nodes exist, are up to date and ready.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRollingOut (True): nodes are being started, replaced or stopped.
	ReasonRollingOut = "RollingOut"
	// ReasonBlocked (False): the Deployment cannot match the spec before the problem in Degraded is solved.
	ReasonBlocked = "Blocked"
)

// Reasons of ConditionDegraded, and of the Warning event that reports it.
const (
	// ReasonAsExpected (False): there is no problem.
	ReasonAsExpected = "AsExpected"
	// ReasonNameTaken (True): an object with a name that this Memcached needs exists that it does not control.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server rejected a request; the message contains its error. It is retried.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed otherwise, for example by a timeout; the message contains the error. It is
	// retried.
	ReasonError = "Error"
	// ReasonRolloutStuck (True): the Deployment reports that pods cannot be created or do not become available.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonNodeCrashing (True): a node terminated and is not ready; the message contains the end of its output.
	ReasonNodeCrashing = "NodeCrashing"
	// ReasonNodeNotStarting (True): a container cannot be started, for example because its image cannot be pulled.
	ReasonNodeNotStarting = "NodeNotStarting"
	// ReasonNodeUnschedulable (True): no machine of the cluster has room for a node's pod.
	ReasonNodeUnschedulable = "NodeUnschedulable"
)

// Reasons of events besides those of ConditionDegraded.
const (
	// EventSynced (Normal): a change of the spec was applied. Pods may still be starting.
	EventSynced = "Synced"
)
