package testenv

import (
	"slices"
	"testing"
)

func TestDefects(t *testing.T) {
	const well = `{"level":"ERROR","msg":"Reconciler error","err":"refused"}` + "\n"
	if found := Defects(well); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	for _, line := range []string{
		"panic: runtime error", `{"level":"ERROR","msg":"Observed a panic"}`, "WARNING: DATA RACE",
		"fatal error: concurrent map writes",
		"CACHE *v1.Job[0] mutated!",
	} {
		if found := Defects(well + line + "\n" + well); !slices.Equal(found, []string{line}) {
			t.Errorf("of %q: found %q", line, found)
		}
	}
}

// The audit log keeps the object of a creation only if it was rejected as invalid.
func TestRefusedOfTheAuditLog(t *testing.T) {
	const object = `{"metadata":{"name":"a"}}`
	for line, want := range map[string]string{
		`{"verb":"create","requestObject":` + object + `,"responseStatus":{"code":422}}`: object,
		`{"verb":"create","requestObject":` + object + `,"responseStatus":{"code":201}}`: "",
		`{"verb":"create","requestObject":` + object + `,"responseStatus":{"code":403}}`: "",
		`{"verb":"delete","requestObject":` + object + `,"responseStatus":{"code":422}}`: "",
		`{"verb":"create","responseStatus":{"code":422}}`:                                "",
	} {
		if request, ok := parse([]byte(line)); !ok || string(request.Refused) != want {
			t.Errorf("of %s: %s, %v", line, request.Refused, ok)
		}
	}
}
