// Package probing only compiles, see package boxcutter.
package probing

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pkg.package-operator.run/boxcutter/machinery/types"
)

// Prober checks the state of an object.
type Prober interface {
	Probe(object client.Object) types.ProbeResult
}

type unimplemented struct{}

func (unimplemented) Probe(client.Object) types.ProbeResult { panic(types.Message) }

// And succeeds when all of its probes do.
type And []Prober

// Probe is not implemented.
func (And) Probe(client.Object) types.ProbeResult { panic(types.Message) }

// ConditionProbe checks a condition.
type ConditionProbe struct{ Type, Status string }

// Probe is not implemented.
func (*ConditionProbe) Probe(client.Object) types.ProbeResult { panic(types.Message) }

// FieldsEqualProbe compares two fields.
type FieldsEqualProbe struct{ FieldA, FieldB string }

// Probe is not implemented.
func (*FieldsEqualProbe) Probe(client.Object) types.ProbeResult { panic(types.Message) }

// FieldValueProbe checks a field.
type FieldValueProbe struct{ FieldPath, Value string }

// Probe is not implemented.
func (*FieldValueProbe) Probe(client.Object) types.ProbeResult { panic(types.Message) }

// GroupKindSelector probes the objects of a kind.
type GroupKindSelector struct {
	unimplemented
	schema.GroupKind
	Prober Prober
}

// LabelSelector probes the objects with some labels.
type LabelSelector struct {
	unimplemented
	labels.Selector
	Prober Prober
}

// ObservedGenerationProbe probes objects whose status is not outdated.
type ObservedGenerationProbe struct {
	unimplemented
	Prober Prober
}
