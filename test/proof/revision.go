package proof

import (
	"fmt"
	"os/exec"
	"strings"
)

// Operator returns the revision of a repository that is tested, and whether files other than documents differ from it.
func Operator(root string) (string, error) {
	var results []string
	commands := [][]string{{"rev-parse", "--short=12", "HEAD"}, {"status", "--porcelain", "--", ".", ":!docs"}}
	for _, arguments := range commands {
		out, err := exec.Command("git", append([]string{"-C", root}, arguments...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err)
		}
		results = append(results, strings.TrimSpace(string(out)))
	}
	if results[1] != "" {
		return results[0] + ", with uncommitted changes", nil
	}
	return results[0], nil
}

// OperatorOf returns what [Operator] does if no program replaces the one built from the tree.
func OperatorOf(root, program string) (string, error) {
	if program != "" {
		return "another", nil
	}
	return Operator(root)
}

// OperatorSetting returns the setting for the result of [Operator].
func OperatorSetting(revision string) Setting { return Setting{Name: "revision", Value: revision} }
