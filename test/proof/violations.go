package proof

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Violation is what a suite has found in the operator without seeded bugs, once.
type Violation struct {
	Date     string `json:"date"`
	Revision string `json:"revision,omitempty"` // see Operator
	Plans    string `json:"plans"`              // or another part of a suite
	Found    string `json:"found"`
	Cause    string `json:"cause"`   // empty until a person has found it
	Changed  string `json:"changed"` // the operator, the suite or nothing
}

// violationsFile contains all violations ever found, in YAML.
const violationsFile = "docs/proof/violations.yaml"

// Violations returns all violations ever found.
func Violations(root string) ([]Violation, error) {
	content, err := os.ReadFile(filepath.Join(root, violationsFile))
	if err != nil {
		return nil, err
	}
	var all []Violation
	return all, yaml.UnmarshalStrict(content, &all)
}

// ViolationTable returns a table of all violations ever found.
func ViolationTable(root string) (Table, error) {
	all, err := Violations(root)
	table := Table{Columns: []string{"date", "plans", "what was found", "cause", "what was changed"}}
	for _, v := range all {
		table.Rows = append(table.Rows, []string{v.Date, v.Plans, v.Found, v.Cause, v.Changed})
	}
	return table, err
}

// Record adds what this run has found to all violations ever found, unless another program was tested.
func (r *Run) Record(plan, found string) error {
	if r.program != "" {
		return nil
	}
	found, _, _ = strings.Cut(strings.TrimSpace(found), "\n")
	content, err := yaml.Marshal([]Violation{{Date: r.Begun.UTC().Format("2006-01-02"), Revision: r.Revision,
		Plans: plan, Found: found}})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(r.root, violationsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
