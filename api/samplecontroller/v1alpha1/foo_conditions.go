package v1alpha1

// Condition types of a Foo. All of them are present from the first status update on.
const (
	// ConditionAvailable reports whether pods of the Foo serve.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether the Deployment is still changing toward the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded reports whether someone has to act.
	ConditionDegraded = "Degraded"
)

// Reasons of ConditionAvailable.
const (
	// ReasonAllReplicasAvailable (True): the desired number of pods is available.
	ReasonAllReplicasAvailable = "AllReplicasAvailable"
	// ReasonSomeReplicasAvailable (True): at least one pod is available, but fewer than desired.
	ReasonSomeReplicasAvailable = "SomeReplicasAvailable"
	// ReasonScaledToZero (True): the desired number of pods is 0.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonNoReplicasAvailable (False): no pod is available.
	ReasonNoReplicasAvailable = "NoReplicasAvailable"
	// ReasonNotObserved (Unknown): the Deployment could not be observed; Degraded contains the reason.
	ReasonNotObserved = "NotObserved"
)

// Reasons of ConditionProgressing.
const (
	// ReasonRolloutComplete (False): the Deployment matches the spec and all its pods are up to date and available.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonRollingOut (True): pods are being started, replaced or stopped.
	ReasonRollingOut = "RollingOut"
	// ReasonBlocked (False): the Deployment cannot match the spec until the problem in Degraded is solved.
	ReasonBlocked = "Blocked"
)

// Reasons of ConditionDegraded.
const (
	// ReasonAsExpected (False): there is no problem.
	ReasonAsExpected = "AsExpected"
	// ReasonNameTaken (True): a Deployment named spec.deploymentName exists that this Foo does not control.
	ReasonNameTaken = "NameTaken"
	// ReasonRefused (True): the API server rejected a request; the message contains its error. The request is retried.
	ReasonRefused = "Refused"
	// ReasonError (True): a request failed otherwise, for example by a timeout; the message contains the error. It is
	// retried.
	ReasonError = "Error"
	// ReasonRolloutStuck (True): the Deployment reports that pods cannot be created or do not become available.
	ReasonRolloutStuck = "RolloutStuck"
)

// Reasons of events.
const (
	// EventSynced (Normal): a change of the spec was applied. Pods may still be starting.
	EventSynced = "Synced"
	// EventStatusNotWritten (Warning): the API server rejects the status, so the status is not up to date.
	EventStatusNotWritten = "StatusNotWritten"
	// EventErrResourceExists (Warning): a Deployment named spec.deploymentName exists that this Foo does not control.
	EventErrResourceExists = "ErrResourceExists"
)
