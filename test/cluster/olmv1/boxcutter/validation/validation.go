// Package validation only compiles, see package boxcutter.
package validation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pkg.package-operator.run/boxcutter/machinery/types"
)

// NewClusterPhaseValidator is not implemented.
func NewClusterPhaseValidator(meta.RESTMapper, client.Writer) any { panic(types.Message) }

// NewRevisionValidator is not implemented.
func NewRevisionValidator() any { panic(types.Message) }
