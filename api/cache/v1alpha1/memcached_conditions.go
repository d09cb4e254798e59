package v1alpha1

// Condition types of a Memcached. All of them are present from the first status on.
const (
	// ConditionAvailable says whether at least one node answers.
	ConditionAvailable = "Available"
	// ConditionProgressing says whether the Memcached is still on its way to its spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded says whether somebody has to act.
	ConditionDegraded = "Degraded"
)

// Reasons of ConditionAvailable.
const (
	// ReasonAllNodesReady (True): every node wanted answers.
	ReasonAllNodesReady = "AllNodesReady"
	// ReasonSomeNodesReady (True): at least one node answers, and not yet all.
	ReasonSomeNodesReady = "SomeNodesReady"
	// ReasonScaledToZero (True): no node is wanted, none is needed.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonNoNodesReady (False): no node answers.
	ReasonNoNodesReady = "NoNodesReady"
	// ReasonNotObserved (Unknown): the nodes could not be looked at; Degraded says why.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonRolloutComplete (False): all nodes wanted are there, up to date and answer.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRollingOut (True): nodes are being started, replaced or stopped.
	ReasonRollingOut = "RollingOut"
	// ReasonBlocked (False): the Deployment cannot be as the spec wants it before the cause that Degraded names is gone.
	ReasonBlocked = "Blocked"
)

// Reasons of ConditionDegraded, and of the Warning event that tells of it.
const (
	// ReasonAsExpected (False): nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonNameTaken (True): an object that this Memcached needs exists under that name and is not its own.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server refused a request; the message has its words. It is tried again.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed otherwise, such as by a time-out; the message says how. It is tried again.
	ReasonError = "Error"
	// ReasonRolloutStuck (True): the Deployment reports that its pods cannot be created or do not come up.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonNodeCrashing (True): a node ended and does not answer; the message has its last words.
	ReasonNodeCrashing = "NodeCrashing"
	// ReasonNodeNotStarting (True): a container cannot be started, for example because its image cannot be pulled.
	ReasonNodeNotStarting = "NodeNotStarting"
	// ReasonNodeUnschedulable (True): no machine of the cluster can take a node.
	ReasonNodeUnschedulable = "NodeUnschedulable"
)

// Reasons of events besides those of ConditionDegraded.
const (
	// EventSynced (Normal): the children are as a change of the Memcached wants them. Its pods may take longer.
	EventSynced = "Synced"
)
