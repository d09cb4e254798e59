package v1alpha1

// Condition types of a Foo. All of them are present from the first status on.
const (
	// ConditionAvailable says whether the pods of the Foo serve now.
	ConditionAvailable = "Available"
	// ConditionProgressing says whether the Foo is still on its way to its spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded says whether somebody has to act.
	ConditionDegraded = "Degraded"
)

// Reasons of ConditionAvailable.
const (
	// ReasonAllReplicasAvailable (True): every pod wanted is available.
	ReasonAllReplicasAvailable = "AllReplicasAvailable"
	// ReasonSomeReplicasAvailable (True): at least one pod is available, and not yet all.
	ReasonSomeReplicasAvailable = "SomeReplicasAvailable"
	// ReasonScaledToZero (True): no pod is wanted, none is needed.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonNoReplicasAvailable (False): no pod is available.
	ReasonNoReplicasAvailable = "NoReplicasAvailable"
	// ReasonNotObserved (Unknown): the Deployment could not be looked at; Degraded says why.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonRolloutComplete (False): the Deployment is as wanted and all its pods are up to date and available.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRollingOut (True): pods are being started, replaced or stopped.
	ReasonRollingOut = "RollingOut"
	// ReasonBlocked (False): the Deployment cannot be as the spec wants it before the cause that Degraded names is gone.
	ReasonBlocked = "Blocked"
)

// Reasons of ConditionDegraded.
const (
	// ReasonAsExpected (False): nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonNameTaken (True): a Deployment named spec.deploymentName exists and is not this Foo's.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server refused a request; the message has its words. It is tried again.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed otherwise, such as by a time-out; the message says how. It is tried again.
	ReasonError = "Error"
	// ReasonRolloutStuck (True): the Deployment reports that its pods cannot be created or do not come up.
	ReasonRolloutStuck = "RolloutStuck"
)

// Reasons of events.
const (
	// EventSynced (Normal): the Deployment is as a change of the Foo wants it. Its pods may take longer.
	EventSynced = "Synced"
	// EventErrResourceExists (Warning): a Deployment named spec.deploymentName exists and is not this Foo's.
	EventErrResourceExists = "ErrResourceExists"
)
