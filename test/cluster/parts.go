//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// parts are the processes of the cluster, each after those it needs.
func (c *cluster) parts() []*part {
	parts := []*part{
		{
			name: "etcd",
			command: c.program("etcd",
				"--data-dir="+c.path("etcd"),
				"--listen-client-urls=https://"+nodeIP+":2379", "--advertise-client-urls=https://"+nodeIP+":2379",
				"--listen-peer-urls=http://"+nodeIP+":0", // nobody joins
				"--cert-file="+c.cert("etcd"), "--key-file="+c.key("etcd"),
				"--client-cert-auth", "--trusted-ca-file="+c.cert("ca"),
				// Its disk may be slow and its data is not worth waiting for.
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
				// As on OpenShift: who makes an owner wait for its child must have a say in the owner's finalizers.
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
		{
			name: "kube-controller-manager",
			command: c.program("kube-controller-manager",
				"--kubeconfig="+c.path("pki", "controller-manager.kubeconfig"), "--leader-elect=false",
				"--bind-address="+nodeIP, "--client-ca-file="+c.cert("ca"),
				"--tls-cert-file="+c.cert("controller-manager"), "--tls-private-key-file="+c.key("controller-manager"),
				"--root-ca-file="+c.cert("ca"), "--service-account-private-key-file="+c.key("service-accounts"),
				"--cluster-signing-cert-file="+c.cert("ca"), "--cluster-signing-key-file="+c.key("ca"),
				"--use-service-account-credentials",
				// The defaults of 20 and 30 hide how fast an operator is.
				"--kube-api-qps=300", "--kube-api-burst=600"),
			ready: c.answers("https://" + nodeIP + ":10257/healthz"),
		},
		{
			name: "kube-scheduler",
			command: c.program("kube-scheduler",
				"--kubeconfig="+c.path("pki", "scheduler.kubeconfig"), "--leader-elect=false",
				"--bind-address="+nodeIP, "--client-ca-file="+c.cert("ca"),
				"--tls-cert-file="+c.cert("scheduler"), "--tls-private-key-file="+c.key("scheduler"),
				"--kube-api-qps=300", "--kube-api-burst=600"),
			ready: c.answers("https://" + nodeIP + ":10259/healthz"),
		},
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
				_, err := c.kubectl(ctx, []byte(resolverRights), "apply", "--server-side", "--filename=-")
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

// program is the command line of one of the cluster's programs.
func (c *cluster) program(name string, args ...string) []string {
	return append([]string{filepath.Join(c.bin, name)}, args...)
}

// part is the part of that name.
func (c *cluster) part(name string) *part {
	for _, p := range c.parts() {
		if p.name == name {
			return p
		}
	}
	panic("cluster: no part " + name)
}

// answers is a check that a URL answers with success.
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

// awaitNode waits until pods can run. What the API server has of an earlier life of the kubelet does not count: its
// lease must have been renewed since the kubelet of now began.
func (c *cluster) awaitNode(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	kubelet := c.part("kubelet")
	info, err := os.Stat(kubelet.recordPath())
	if err != nil {
		return err
	}
	err = poll(ctx, func() error {
		if !kubelet.running() {
			cancel()
			return errors.New("the kubelet has ended")
		}
		out, err := c.kubectl(ctx, nil, "get", "lease/"+nodeName, "--namespace=kube-node-lease",
			"--output=jsonpath={.spec.renewTime}")
		if err != nil {
			return err
		}
		renewed, err := time.Parse(time.RFC3339Nano, out)
		if err != nil || renewed.Before(info.ModTime()) {
			return fmt.Errorf("its lease was renewed at %s: %w", out, err)
		}
		_, err = c.kubectl(ctx, nil, "wait", "--for=condition=Ready", "--timeout=5s", "node/"+nodeName)
		return err
	})
	if err != nil {
		return fmt.Errorf("the node is not ready: %w\nThe last lines of %s:\n%s", err, kubelet.log,
			lastLines(kubelet.log, 15))
	}
	c.clock.Say("The node is ready.")
	return nil
}

// resolverRights let CoreDNS see what it answers for.
const resolverRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:coredns
rules:
- apiGroups: [""]
  resources: [services, pods, namespaces]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: system:coredns
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:coredns
subjects:
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: system:coredns
`
