// Package types only compiles, see package boxcutter.
package types

import "sigs.k8s.io/controller-runtime/pkg/client"

// Message is what everything that is not implemented panics with.
const Message = "the feature gate BoxcutterRuntime is not supported: boxcutter is replaced by a stand-in"

// ProbeStatusTrue is the status of a probe that succeeded.
const ProbeStatusTrue = "True"

// Phase is a part of the objects of a revision.
type Phase interface{ GetObjects() []client.Object }

// Revision has the objects of a version of a bundle.
type Revision interface{ GetPhases() []Phase }

// RevisionReconcileOption is an option of applying a revision.
type RevisionReconcileOption any

// RevisionTeardownOption is an option of deleting a revision.
type RevisionTeardownOption any

// ProbeResult is the result of a probe.
type ProbeResult struct {
	Status   string
	Messages []string
}
