//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

const containerdSocket = runDir + "/containerd.sock"

// writeFiles writes all that the parts read: certificates, kubeconfigs and configurations.
func (c *cluster) writeFiles() error {
	for _, dir := range []string{"pki", "logs", "cni", "certs.d/" + registry, "kubelet", "proxy-programs", "run", "tmp"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := c.writeCertificates(); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	kubeconfigs := map[string]string{"admin": c.path("kubeconfig")}
	for _, name := range []string{"controller-manager", "scheduler", "kubelet", "proxy", "coredns"} {
		kubeconfigs[name] = c.path("pki", name+".kubeconfig")
	}
	for user, path := range kubeconfigs {
		if err := c.writeKubeconfig(user, path); err != nil {
			return err
		}
	}
	values := map[string]string{
		"Dir": c.dir, "RunDir": runDir, "Socket": containerdSocket, "Registry": registry, "NodeIP": nodeIP,
		"NodeName": nodeName,
		"PodCIDR":  podCIDR, "PodLink": podLink, "Cgroup": cgroup, "CA": c.cert("ca"),
		"KubeletCert": c.cert("kubelet"), "KubeletKey": c.key("kubelet"),
		"ProxyKubeconfig": c.path("pki", "proxy.kubeconfig"), "DNSKubeconfig": c.path("pki", "coredns.kubeconfig"),
	}
	return errors.Join(
		fill(c.path("containerd.toml"), containerdConfig, values),
		fill(c.path("certs.d", registry, "hosts.toml"), hostsConfig, values),
		fill(c.path("cni", "10-pods.conflist"), cniConfig, values),
		fill(c.path("kubelet.yaml"), kubeletConfig, values),
		fill(c.path("proxy.yaml"), proxyConfig, values),
		fill(c.path("Corefile"), corefile, values),
		c.linkProxyPrograms(),
		fill(c.path("resolv.conf"), "nameserver {{.NodeIP}}\n", values),
	)
}

func fill(path, text string, values map[string]string) error {
	var out bytes.Buffer
	if err := template.Must(template.New(path).Parse(text)).Execute(&out, values); err != nil {
		return err
	}
	return writeFile(path, out.Bytes(), 0o644)
}

// writeFile writes a file whole or not at all.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// linkProxyPrograms makes the directory that is all of PATH for kube-proxy. It would also use modprobe and nft, to
// delete what it takes for remains of its other modes, and that may be somebody else's.
func (c *cluster) linkProxyPrograms() error {
	for _, program := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save",
		"ip6tables-restore", "conntrack"} {
		path, err := lookup(program)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, c.path("proxy-programs", program)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (c *cluster) writeKubeconfig(user, path string) error {
	return writeFile(path, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: default
clusters:
- name: default
  cluster: {server: "https://%s:6443", certificate-authority: %q}
contexts:
- name: default
  context: {cluster: default, user: %q}
users:
- name: %q
  user: {client-certificate: %q, client-key: %q}
`, nodeIP, c.cert("ca"), user, user, c.cert(user), c.key(user)), 0o600)
}

const containerdConfig = `version = 3
root = "{{.Dir}}/containerd"
state = "{{.RunDir}}/containerd"

[grpc]
  address = "{{.Socket}}"

[ttrpc]
  address = "{{.Socket}}.ttrpc"

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{{.Registry}}/pause:1"

[plugins."io.containerd.cri.v1.images".registry]
  config_path = "{{.Dir}}/certs.d"

[plugins."io.containerd.cri.v1.runtime"]
  # A virtual machine may not have the right to make a process less likely to be killed when memory is short.
  restrict_oom_score_adj = true
  # Its profile would stay in the kernel.
  disable_apparmor = true
  netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "{{.Dir}}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = "{{.RunDir}}/runc"

[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Dir}}/opt"

[plugins."io.containerd.shim.v1.manager"]
  socket_dir = "{{.RunDir}}/s"

[plugins."io.containerd.nri.v1.nri"]
  disable = true
`

const hostsConfig = `server = "https://{{.Registry}}"

[host."https://{{.Registry}}"]
  ca = "{{.CA}}"
`

// Traffic between pods stays on the bridge; what goes to a service leaves it for the rules of kube-proxy and comes
// back.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "{{.PodLink}}",
  "plugins": [{
    "type": "bridge",
    "bridge": "{{.PodLink}}",
    "isGateway": true,
    "hairpinMode": true,
    "ipam": {
      "type": "host-local",
      "dataDir": "{{.RunDir}}/addresses",
      "ranges": [[{"subnet": "{{.PodCIDR}}"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {{.NodeIP}}
healthzBindAddress: {{.NodeIP}}
tlsCertFile: {{.KubeletCert}}
tlsPrivateKeyFile: {{.KubeletKey}}
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: {{.CA}}}
authorization:
  mode: Webhook
clusterDomain: cluster.local
clusterDNS: [{{.NodeIP}}]
resolvConf: {{.Dir}}/resolv.conf
containerRuntimeEndpoint: unix://{{.Socket}}
podLogsDir: {{.Dir}}/logs/pods
volumePluginDir: {{.Dir}}/kubelet/volume-plugins
cgroupDriver: cgroupfs
cgroupRoot: /{{.Cgroup}}
failCgroupV1: false
failSwapOn: false
# Its chains would stay when it has gone.
makeIPTablesUtilChains: false
# The machine's own processes are not the kubelet's business.
enforceNodeAllocatable: [pods]
oomScoreAdj: 0
maxPods: 500
serializeImagePulls: false
registryPullQPS: 0
kubeAPIQPS: 200
kubeAPIBurst: 400
# A full disk or little memory is for the machine's owner to judge.
evictionHard: {memory.available: 100Mi, nodefs.available: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
`

// Replies must come back through the rules that changed the address, also on the bridge that both pods hang on: hence
// masqueradeAll.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: {{.NodeName}}
bindAddress: {{.NodeIP}}
healthzBindAddress: {{.NodeIP}}:10256
metricsBindAddress: {{.NodeIP}}:10249
clusterCIDR: {{.PodCIDR}}
clientConnection: {kubeconfig: {{.ProxyKubeconfig}}}
# The machine's settings stay as they are.
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
oomScoreAdj: 0
iptables:
  masqueradeAll: true
  localhostNodePorts: false
  minSyncPeriod: 100ms
`

const corefile = `cluster.local:53 in-addr.arpa:53 {
	bind {{.NodeIP}}
	ready {{.NodeIP}}:8181
	errors
	cache 5
	kubernetes cluster.local in-addr.arpa {
		kubeconfig {{.DNSKubeconfig}}
		pods insecure
	}
}
`
