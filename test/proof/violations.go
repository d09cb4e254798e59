package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Violation is what a suite has found in the operator without seeded bugs, once.
type Violation struct {
	Date     string `json:"date"`
	Revision string `json:"revision"` // see Run; empty before 2026-11-27
	Plan     string `json:"plan"`     // or another part of a suite
	Found    string `json:"found"`
	Cause    string `json:"cause"`   // empty until a person has found it
	Changed  string `json:"changed"` // the operator, the suite or nothing
}

// violationsFile contains all violations ever found, in YAML.
const violationsFile = "docs/proof/violations.yaml"

// readViolations returns all violations ever found.
func readViolations(root string) ([]Violation, error) {
	content, err := os.ReadFile(filepath.Join(root, violationsFile))
	if err != nil {
		return nil, err
	}
	var all []Violation
	return all, yaml.UnmarshalStrict(content, &all)
}

// ViolationTable returns a table of all violations ever found.
func ViolationTable(root string) (Table, error) {
	all, err := readViolations(root)
	table := Table{Columns: []string{"date", "revision", "plan", "what was found", "cause", "what was changed"}}
	for _, v := range all {
		table.Rows = append(table.Rows, []string{v.Date, v.Revision, v.Plan, v.Found, v.Cause, v.Changed})
	}
	return table, err
}

// longest is how much is recorded of what was found, in bytes.
const longest = 600

// Record adds what this run has found to all violations ever found. It adds nothing for another operator than that of
// the repository, and nothing if the same finding of the same plan is recorded and has no cause yet.
func (r *Run) Record(plan, found string) error {
	if r.root == "" {
		return nil
	}
	found = strings.Join(strings.Fields(found), " ")
	found = strings.ToValidUTF8(found[:min(len(found), longest)], "")
	all, err := readViolations(r.root)
	if err != nil || slices.ContainsFunc(all, func(v Violation) bool {
		return v.Plan == plan && v.Found == found && v.Cause == ""
	}) {
		return err
	}
	file, err := os.OpenFile(filepath.Join(r.root, violationsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "- date: %q\n  revision: %q\n  plan: %q\n  found: %q\n  cause: \"\"\n  changed: \"\"\n",
		r.Begun.UTC().Format("2006-01-02"), r.Revision, plan, found)
	return errors.Join(err, file.Close())
}
