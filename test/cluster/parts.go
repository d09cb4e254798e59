//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/example/memcached-operator/test/cluster/progress"
)

// nodeLease are arguments of kubectl that name the lease of the node.
var nodeLease = []string{"--namespace=kube-node-lease", "lease/" + nodeName}

// parts returns the processes of the cluster, each after those it depends on.
func (c *cluster) parts() []*part {
	parts := []*part{
		{
			name: "etcd",
			command: c.program("etcd",
				"--data-dir="+c.path("etcd"),
				"--listen-client-urls=https://"+nodeIP+":2379", "--advertise-client-urls=https://"+nodeIP+":2379",
				"--listen-peer-urls=http://"+nodeIP+":0", // no member joins
				"--cert-file="+c.cert("etcd"), "--key-file="+c.key("etcd"),
				"--client-cert-auth", "--trusted-ca-file="+c.cert("ca"),
				// The disk may be slow, and the data may be lost.
				"--unsafe-no-fsync", "--log-level=warn"),
			ready: c.answers("https://" + nodeIP + ":2379/health"),
		},
		{
			name: "kube-apiserver",
			command: c.program("kube-apiserver",
				"--bind-address="+nodeIP, "--advertise-address="+nodeIP, "--secure-port=6443",
				"--etcd-servers=https://"+nodeIP+":2379", "--etcd-cafile="+c.cert("ca"),
				"--etcd-certfile="+c.cert("admin"), "--etcd-keyfile="+c.key("admin"),
				"--service-cluster-ip-range="+serviceCIDR,
				"--authorization-mode=Node,RBAC", "--allow-privileged",
				// As on OpenShift: setting blockOwnerDeletion requires the right to update the finalizers of the owner.
				"--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
				"--client-ca-file="+c.cert("ca"),
				"--tls-cert-file="+c.cert("apiserver"), "--tls-private-key-file="+c.key("apiserver"),
				"--kubelet-certificate-authority="+c.cert("ca"),
				"--kubelet-client-certificate="+c.cert("apiserver-kubelet"), "--kubelet-client-key="+c.key("apiserver-kubelet"),
				"--kubelet-preferred-address-types=InternalIP",
				"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
				"--service-account-key-file="+c.key("service-accounts"),
				"--service-account-signing-key-file="+c.key("service-accounts"),
				// The machine may have no route to Services.
				"--enable-aggregator-routing",
				"--requestheader-client-ca-file="+c.cert("ca"), "--requestheader-allowed-names=front-proxy",
				"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
				"--requestheader-extra-headers-prefix=X-Remote-Extra-",
				"--proxy-client-cert-file="+c.cert("front-proxy"), "--proxy-client-key-file="+c.key("front-proxy")),
			ready: c.answers("https://" + nodeIP + ":6443/readyz"),
		},
		c.controller("controller-manager", 10257,
			"--root-ca-file="+c.cert("ca"), "--service-account-private-key-file="+c.key("service-accounts"),
			"--cluster-signing-cert-file="+c.cert("ca"), "--cluster-signing-key-file="+c.key("ca"),
			"--use-service-account-credentials"),
		c.controller("scheduler", 10259),
		{
			name:    "registry",
			command: []string{filepath.Join(c.bin, "cluster"), "--dir=" + c.dir, "--bin=" + c.bin, "registry"},
			ready:   c.answers("https://" + registry + "/v2/"),
		},
		{
			name:    "containerd",
			command: c.program("containerd", "--config="+c.path("containerd.toml")),
			files:   []string{c.path("containerd.toml")},
			ready: func(ctx context.Context) error {
				_, err := command(ctx, filepath.Join(c.bin, "ctr"), "--address="+containerdSocket, "version")
				return err
			},
		},
		{
			name: "kubelet",
			command: c.program("kubelet",
				"--config="+c.path("kubelet.yaml"), "--kubeconfig="+c.path("pki", "kubelet.kubeconfig"),
				"--root-dir="+c.path("kubelet"), "--hostname-override="+nodeName, "--node-ip="+nodeIP),
			files: []string{c.path("kubelet.yaml"), c.path("cni", "10-pods.conflist")},
			prepare: func(ctx context.Context) error {
				_, err := c.kubectl(ctx, nil, append([]string{"delete", "--ignore-not-found"}, nodeLease...)...)
				return err
			},
			ready: c.answers("http://" + nodeIP + ":10248/healthz"),
		},
		{
			name:    "kube-proxy",
			command: c.program("kube-proxy", "--config="+c.path("proxy.yaml")),
			path:    c.path("proxy-programs"),
			files:   []string{c.path("proxy.yaml")},
			ready:   c.answers("http://" + nodeIP + ":10256/healthz"),
		},
		{
			name:    "coredns",
			command: c.program("coredns", "-conf="+c.path("Corefile")),
			files:   []string{c.path("Corefile")},
			prepare: func(ctx context.Context) error {
				_, err := c.kubectl(ctx, nil, "apply", "--server-side", "--filename="+c.path("coredns-rights.yaml"))
				return err
			},
			ready: c.answers("http://" + nodeIP + ":8181/ready"),
		},
	}
	for _, p := range parts {
		p.dir, p.log = c.path("run"), c.path("logs", p.name+".log")
		p.files = append(p.files, c.cert("ca"))
	}
	return parts
}

// controller returns the part of a client of the API server that needs no leader election.
func (c *cluster) controller(name string, port int, args ...string) *part {
	return &part{
		name: "kube-" + name,
		command: c.program("kube-"+name, append(args,
			"--kubeconfig="+c.path("pki", name+".kubeconfig"), "--leader-elect=false",
			"--bind-address="+nodeIP, "--client-ca-file="+c.cert("ca"),
			"--tls-cert-file="+c.cert(name), "--tls-private-key-file="+c.key(name),
			// The defaults of 20 and 30 would limit what operators cause.
			"--kube-api-qps=300", "--kube-api-burst=600")...),
		ready: c.answers(fmt.Sprintf("https://%s:%d/healthz", nodeIP, port)),
	}
}

// program returns the command line of one of the cluster's programs.
func (c *cluster) program(name string, args ...string) []string {
	return append([]string{filepath.Join(c.bin, name)}, args...)
}

// part returns the part with a name.
func (c *cluster) part(name string) *part {
	parts := c.parts()
	return parts[slices.IndexFunc(parts, func(p *part) bool { return p.name == name })]
}

// answers returns a check that succeeds when a GET request of the URL does.
func (c *cluster) answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := c.http.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 300))
			return fmt.Errorf("%s: %s: %s", url, response.Status, body)
		}
		return nil
	}
}

// awaitNode waits until pods can run. The lease of the node was deleted before the kubelet started, so that the state
// of the node is one that this kubelet has reported.
func (c *cluster) awaitNode(ctx context.Context) error {
	err := c.part("kubelet").await(ctx, func(ctx context.Context) error {
		if _, err := c.kubectl(ctx, nil, append([]string{"get"}, nodeLease...)...); err != nil {
			return err
		}
		_, err := c.kubectl(ctx, nil, "wait", "--for=condition=Ready", "--timeout=4s", "node/"+nodeName)
		return err
	})
	if err == nil {
		progress.Printf("The node is ready.")
	}
	return err
}
