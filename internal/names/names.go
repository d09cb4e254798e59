// Package names turns the name of a resource, which may have 253 characters, into names that allow for fewer.
package names

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Label returns name as the value of a label: the name itself up to 63 characters, else its beginning and a hash (32
// bits) of the whole. Two names can give one value, by chance or if a short name is made to look like a shortened one.
//
// Selectors are made of it, so what it returns for a name must never change.
func Label(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	return shorten(name, name)
}

// Service returns name as the name of a Service, which is a DNS label (RFC 1035): the name itself where it is one, else
// a shortened form without dots, with a hash.
//
// Clients have it in their configuration, so what it returns for a name must never change.
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
