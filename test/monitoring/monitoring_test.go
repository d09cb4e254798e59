package monitoring

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// "make monitoring-test" sets it.
var promtool = flag.String("promtool", "", "the program promtool; without it, tests with it are skipped")

const config = "../../config/prometheus"

// rule is what a PrometheusRule has of an alert or a recording rule.
type rule struct {
	Alert, Record, Expr string
	Annotations         map[string]string
}

// rules returns the content of the PrometheusRules, as files for Prometheus, and their rules.
func rules(t *testing.T) (files map[string][]byte, all []rule) {
	t.Helper()
	files, err := RuleFiles(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range files {
		var spec struct{ Groups []struct{ Rules []rule } }
		if err := json.Unmarshal(content, &spec); err != nil {
			t.Fatal(err)
		}
		for _, group := range spec.Groups {
			all = append(all, group.Rules...)
		}
	}
	if len(files) < 2 || len(all) < 10 {
		t.Fatalf("%d files with %d rules", len(files), len(all))
	}
	return files, all
}

func TestRules(t *testing.T) {
	if *promtool == "" {
		t.Skip("set -promtool")
	}
	dir := t.TempDir()
	files, _ := rules(t)
	var names []string
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		write(name, content)
		names = append(names, name)
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		command := exec.Command(*promtool, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run(append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, names...)...)
	tests, _ := filepath.Glob("testdata/*.test.yaml")
	for _, path := range tests {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Base(path), append([]byte("rule_files: "+string(list)+"\n"), content...))
		run("test", "rules", filepath.Base(path))
	}
}

// Each alert has a test, a runbook and a link to it.
func TestAlertsHaveRunbooks(t *testing.T) {
	runbooks, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	paths, _ := filepath.Glob("testdata/*.test.yaml")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(content)
	}
	_, all := rules(t)
	for _, rule := range all {
		name := rule.Alert
		if name == "" {
			if !strings.Contains(tests.String(), "expr: "+rule.Record+"\n") {
				t.Errorf("%s has no test in testdata", rule.Record)
			}
			continue
		}
		if !strings.Contains(string(runbooks), "\n## "+name+"\n") {
			t.Errorf("docs/runbooks.md has no section %s", name)
		}
		if url := rule.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbooks.md#"+strings.ToLower(name)) {
			t.Errorf("%s has the runbook %q", name, url)
		}
		if !strings.Contains(tests.String(), "alertname: "+name+"\n") {
			t.Errorf("%s has no test in testdata", name)
		}
	}
}

// The queries of the dashboard are compared with what a real Prometheus has in test/e2e.
func TestDashboard(t *testing.T) {
	panels, err := Panels(config)
	if err != nil || len(panels) == 0 {
		t.Fatalf("%d panels: %v", len(panels), err)
	}
	known := map[int]bool{}
	for _, panel := range panels {
		if known[panel.ID] || panel.Title == "" || (panel.Type != "row" && len(panel.Targets) == 0) {
			t.Errorf("the panel %d, %q, is incomplete or not the only one of its number", panel.ID, panel.Title)
		}
		known[panel.ID] = true
	}
}
