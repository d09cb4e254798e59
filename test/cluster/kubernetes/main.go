// Command kubernetes contains all programs of a Kubernetes cluster, linked from their Go modules. It runs the one that
// it is called by, through a symbolic link, or that its first argument names: "kubernetes kube-apiserver --help".
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs are the main functions by name. Args are like os.Args.
var programs = map[string]func(args []string) int{
	"etcd": func(args []string) int {
		etcdmain.Main(args)
		return 0
	},
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(controllermanager.NewControllerManagerCommand),
	"kube-proxy":              component(proxy.NewProxyCommand),
	"kube-scheduler": component(func() *cobra.Command {
		return scheduler.NewSchedulerCommand()
	}),
	"kubelet": component(func() *cobra.Command {
		return kubelet.NewKubeletCommand(context.Background())
	}),
	"kubectl": func(args []string) int {
		os.Args = args
		// kubectl prints its own errors; cli.Run would print them a second time.
		cmdutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
		return 0
	},
}

func main() {
	args := slices.Clone(os.Args)
	args[0] = filepath.Base(args[0])
	if _, ok := programs[args[0]]; !ok && len(args) > 1 {
		args = args[1:]
	}
	run, ok := programs[args[0]]
	if !ok {
		fmt.Fprintf(os.Stderr, "kubernetes: unknown program %q; use one of: %s\n", args[0],
			strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		os.Exit(2)
	}
	os.Exit(run(args))
}

// component returns the main function of a Kubernetes component, whose command reads os.Args.
func component(command func() *cobra.Command) func(args []string) int {
	return func(args []string) int {
		os.Args = args
		return cli.Run(command())
	}
}
