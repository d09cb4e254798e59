// Package machinery only compiles, see package boxcutter.
package machinery

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pkg.package-operator.run/boxcutter/machinery/types"
)

// ActionCollision says that an object of the same name exists.
const ActionCollision = "Collision"

type result interface {
	String() string
	IsComplete() bool
	GetValidationError() error
}

// RevisionTeardownResult is the result of deleting a revision.
type RevisionTeardownResult interface{ IsComplete() bool }

// RevisionResult is the result of applying a revision.
type RevisionResult interface {
	result
	InTransition() bool
	GetPhases() []PhaseResult
}

// PhaseResult is the result of applying a phase.
type PhaseResult interface {
	result
	GetObjects() []ObjectResult
}

// ObjectResult is the result of applying an object.
type ObjectResult interface {
	String() string
	Action() string
	Object() client.Object
	ProbeResults() map[string]types.ProbeResult
}

// RevisionEngine applies and deletes revisions.
type RevisionEngine struct{}

// Teardown is not implemented.
func (*RevisionEngine) Teardown(context.Context, types.Revision, ...types.RevisionTeardownOption) (
	RevisionTeardownResult, error) {
	panic(types.Message)
}

// Reconcile is not implemented.
func (*RevisionEngine) Reconcile(context.Context, types.Revision, ...types.RevisionReconcileOption) (
	RevisionResult, error) {
	panic(types.Message)
}

// NewRevisionEngine is not implemented.
func NewRevisionEngine(_, _ any, _ client.Client) *RevisionEngine { panic(types.Message) }

// NewPhaseEngine is not implemented.
func NewPhaseEngine(_, _ any) any { panic(types.Message) }

// NewObjectEngine is not implemented.
func NewObjectEngine(*runtime.Scheme, client.Reader, client.Writer, any, string, string, string, client.Reader) any {
	panic(types.Message)
}

// NewComparator is not implemented.
func NewComparator(discovery.DiscoveryInterface, *runtime.Scheme, string) any { panic(types.Message) }
