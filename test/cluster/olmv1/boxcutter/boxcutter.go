// Package boxcutter stands in for the module of this name, which operator-controller links and which not every module
// proxy serves. With operator-controller's feature gate BoxcutterRuntime, which is off by default, it would apply the
// objects of a bundle; without it, Helm does, and of this module only the package managedcache is called. So that is
// implemented, and the rest only compiles.
package boxcutter

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pkg.package-operator.run/boxcutter/machinery/types"
	"pkg.package-operator.run/boxcutter/ownerhandling"
	"pkg.package-operator.run/boxcutter/probing"
)

// ProgressProbeType is the type of the probes that a revision waits for.
const ProgressProbeType = "Progress"

type (
	// Phase is a part of the objects of a revision.
	Phase = types.Phase
	// RevisionBuilder is a revision.
	RevisionBuilder = types.Revision
	// RevisionReconcileOption is an option of applying a revision.
	RevisionReconcileOption = types.RevisionReconcileOption
	// ObjectReconcileOption is an option of applying an object.
	ObjectReconcileOption any
	// WithCollisionProtection says whose objects may be taken over.
	WithCollisionProtection string
)

// NewRevisionWithOwner is not implemented.
func NewRevisionWithOwner(string, int64, []Phase, client.Object, *ownerhandling.Native) RevisionBuilder {
	panic(types.Message)
}

// NewPhase is not implemented.
func NewPhase(string, []client.Object) Phase { panic(types.Message) }

// WithSiblingOwners is not implemented.
func WithSiblingOwners([]client.Object) RevisionReconcileOption { panic(types.Message) }

// WithProbe is not implemented.
func WithProbe(string, probing.Prober) RevisionReconcileOption { panic(types.Message) }

// WithAggregatePhaseReconcileErrors is not implemented.
func WithAggregatePhaseReconcileErrors() RevisionReconcileOption { panic(types.Message) }

// WithObjectReconcileOptions is not implemented.
func WithObjectReconcileOptions(client.Object, ...ObjectReconcileOption) RevisionReconcileOption {
	panic(types.Message)
}
