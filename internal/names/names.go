// Package names turns the name of a resource, which may have 253 characters, into shorter names.
package names

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Label returns a label value for a name: the name itself up to 63 characters, else its beginning and a 32-bit hash of
// the whole. Two names can have the same value, by chance or if a short name is chosen to look like a shortened one.
//
// Selectors contain it, so the result for a name must never change.
func Label(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return shorten(name, name)
}

// Service returns the name of the Service for a resource, which must be a DNS label (RFC 1035): the name of the
// resource if it is one, else a shortened form without dots, with a hash.
//
// Clients have it in their configuration, so the result for a name must never change.
func Service(name string) string {
	if len(validation.IsDNS1035Label(name)) == 0 {
		return name
	}
	label := strings.ReplaceAll(name, ".", "-")
	if label[0] >= '0' && label[0] <= '9' {
		label = "n" + label
	}
	return shorten(label, name)
}

// shorten cuts text to fit a label together with a hash of the name it stands for.
func shorten(text, name string) string {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	suffix := fmt.Sprintf("-%08x", hash.Sum32())
	text = text[:min(len(text), validation.LabelValueMaxLength-len(suffix))]
	return strings.TrimRight(text, "-.") + suffix
}
