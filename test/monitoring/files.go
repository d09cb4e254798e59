// Package monitoring reads config/prometheus for tests, and tests it: rules and alerts with promtool, and that each
// alert has a runbook.
package monitoring

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Panel is a panel of the dashboard.
type Panel struct {
	ID          int
	Title, Type string
	Targets     []struct{ Expr string }
}

// RuleFiles returns what Prometheus reads of the PrometheusRules in a directory, by the names of the files.
func RuleFiles(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*rule.yaml"))
	if err != nil || len(paths) < 2 {
		return nil, errors.Join(err, errors.New(dir+" does not have the PrometheusRules"))
	}
	files := map[string][]byte{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var object struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := yaml.Unmarshal(content, &object); err != nil {
			return nil, err
		}
		files[filepath.Base(path)] = object.Spec
	}
	return files, nil
}

// Panels returns the panels of the dashboard in a directory.
func Panels(dir string) ([]Panel, error) {
	content, err := os.ReadFile(filepath.Join(dir, "memcached_dashboard.json"))
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	err = json.Unmarshal(content, &dashboard)
	return dashboard.Panels, err
}
