// Command controlplane contains kube-apiserver and kube-controller-manager of one version of Kubernetes. It runs the
// one that it is called by, through a symbolic link. go.mod has the oldest version that the operator supports, and each
// other file *.mod another one, for "go build -modfile".
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	switch program := filepath.Base(os.Args[0]); program {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "controlplane: call it kube-apiserver or kube-controller-manager, not %s\n", program)
		os.Exit(2)
	}
}
