package v1alpha1

// Condition types of a Memcached. All of them are present from the first status update on. A node is one memcached
// server, run by one pod; a machine of the cluster is called a machine.
const (
	// ConditionAvailable reports whether at least one node is ready, or spec.size is 0.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether the children are still changing toward the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded reports whether someone has to act.
	ConditionDegraded = "Degraded"
	// ConditionMemorySufficient reports whether the memory limit of the nodes is as high as their configuration needs.
	ConditionMemorySufficient = "MemorySufficient"
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
	// ReasonNotObserved (Unknown): the nodes could not be observed; the condition Degraded contains the cause.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonRolloutComplete (False): all nodes exist, are up to date, and are ready.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRollingOut (True): nodes are being started, replaced or stopped.
	ReasonRollingOut = "RollingOut"
	// ReasonBlocked (False): the Deployment cannot match the spec until the problem in Degraded is solved.
	ReasonBlocked = "Blocked"
	// ReasonPaused (False): spec.paused is true; the operator writes no children.
	ReasonPaused = "Paused"
)

// Reasons of ConditionDegraded. When it is True, a Warning event has the same reason.
const (
	// ReasonAsExpected (False): there is no problem.
	ReasonAsExpected = "AsExpected"
	// ReasonInvalidSpec (True): fields of the spec contradict each other; the message names the field to change. The
	// operator leaves the children as they are.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNameTaken (True): a name that this Memcached needs is taken by an object that it does not control.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server rejected a request; the message contains its error. The request is retried.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed for another reason, such as a timeout; the message contains the error. The
	// request is retried.
	ReasonError = "Error"
	// ReasonRolloutStuck (True): the Deployment reports that pods cannot be created or do not become available.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonNodeCrashing (True): a node's container terminated and the node is not ready; the message contains the end of
	// its output.
	ReasonNodeCrashing = "NodeCrashing"
	// ReasonNodeNotStarting (True): a container cannot be started, for example because its image cannot be pulled.
	ReasonNodeNotStarting = "NodeNotStarting"
	// ReasonNodeTerminating (True): a node of a StatefulSet is being deleted and does not end, so it is not replaced;
	// its machine may be lost.
	ReasonNodeTerminating = "NodeTerminating"
	// ReasonNodeUnschedulable (True): the scheduler found no machine for a node's pod, for example for lack of memory.
	ReasonNodeUnschedulable = "NodeUnschedulable"
)

// Reasons of ConditionMemorySufficient.
const (
	// ReasonLimitSufficient (True): the limit is at least what the configuration needs.
	ReasonLimitSufficient = "LimitSufficient"
	// ReasonLimitTooLow (False): full nodes may be killed; the message contains the limit that the configuration needs.
	ReasonLimitTooLow = "LimitTooLow"
)

// Other reasons of events.
const (
	// EventSynced (Normal): a change of the spec was applied. Pods may still be starting.
	EventSynced = "Synced"
	// EventStatusNotWritten (Warning): the API server rejects the status, so the status is not up to date.
	EventStatusNotWritten = "StatusNotWritten"
)
