// Command golangci-lint is golangci-lint with kube-api-linter built in as a module plugin; see
// https://golangci-lint.run/plugins/module-plugins/.
package main

import (
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter"
)

func main() {
	// Without a version, golangci-lint keys its cache by the hash of this program, which covers the plugin too.
	if err := commands.Execute(commands.BuildInfo{}); err != nil {
		os.Exit(exitcodes.Failure)
	}
}
