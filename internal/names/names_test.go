package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// These names must never change: selectors and the configuration of clients contain them.
func TestNamesNeverChange(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, test := range []struct{ name, label, service string }{
		{"web", "web", "web"},
		{"web-1", "web-1", "web-1"},
		{"1web", "1web", "n1web-3fffd13a"},
		{"web.example", "web.example", "web-example-a6a670e9"},
		{strings.Repeat("a", 63), strings.Repeat("a", 63), strings.Repeat("a", 63)},
		{long, strings.Repeat("a", 54) + "-d96f0f85", strings.Repeat("a", 54) + "-d96f0f85"},
		{strings.Repeat("a", 53) + "." + strings.Repeat("b", 10), strings.Repeat("a", 53) + "-c15775f6",
			strings.Repeat("a", 53) + "-c15775f6"},
	} {
		if got := Label(test.name); got != test.label {
			t.Errorf("Label(%q) = %q, want %q", test.name, got, test.label)
		}
		if got := Service(test.name); got != test.service {
			t.Errorf("Service(%q) = %q, want %q", test.name, got, test.service)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"web", "1", "a.b", "0.0", strings.Repeat("a", 253), strings.Repeat("a.", 126) + "a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Skip() // no resource can have it
		}
		if faults := validation.IsValidLabelValue(Label(name)); len(faults) > 0 {
			t.Errorf("Label(%q) = %q: %v", name, Label(name), faults)
		}
		if faults := validation.IsDNS1035Label(Service(name)); len(faults) > 0 {
			t.Errorf("Service(%q) = %q: %v", name, Service(name), faults)
		}
	})
}
