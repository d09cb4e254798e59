//go:build linux

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*"))

const containerdSocket = runDir + "/containerd.sock"

// writeFiles writes all files that the parts read: certificates, kubeconfigs and configurations.
func (c *cluster) writeFiles(context.Context) error {
	const hostsDir, digestsDir, networkDir = "certs.d/_default", "certs.d/" + digestRegistry, "cni"
	for _, dir := range []string{"pki", "logs", networkDir, hostsDir, digestsDir, "kubelet", "proxy-programs", "run"} {
		if err := os.MkdirAll(c.path(dir), 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(c.writeCertificates(), c.connect(), c.linkProxyPrograms()); err != nil {
		return err
	}
	values := map[string]string{
		"Dir": c.dir, "RunDir": runDir, "Registry": registry, "NodeIP": nodeIP, "NodeName": nodeName, "PodCIDR": podCIDR,
		"PodLink": podLink, "Cgroup": cgroup, "DigestRegistry": digestRegistry,
	}
	for user, path := range map[string]string{
		"admin":              c.path("kubeconfig"),
		"controller-manager": c.path("pki", "controller-manager.kubeconfig"),
		"scheduler":          c.path("pki", "scheduler.kubeconfig"),
		"kubelet":            c.path("pki", "kubelet.kubeconfig"),
		"proxy":              c.path("pki", "proxy.kubeconfig"),
		"coredns":            c.path("pki", "coredns.kubeconfig"),
	} {
		own := maps.Clone(values)
		own["User"] = user
		if err := render("kubeconfig", path, 0o600, own); err != nil {
			return err
		}
	}
	if err := render("hosts-digests.toml", c.path(digestsDir, "hosts.toml"), 0o644, values); err != nil {
		return err
	}
	for name, dir := range map[string]string{
		"10-pods.conflist": networkDir, "hosts.toml": hostsDir, "containerd.toml": "", "kubelet.yaml": "", "proxy.yaml": "",
		"Corefile": "", "coredns-rights.yaml": "", "resolv.conf": "", "nginx.conf": "",
	} {
		if err := render(name, c.path(dir, name), 0o644, values); err != nil {
			return err
		}
	}
	return nil
}

func render(name, path string, mode fs.FileMode, values map[string]string) error {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, values); err != nil {
		return err
	}
	return writeFile(path, out.Bytes(), mode)
}

// writeFile replaces a file atomically.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// linkProxyPrograms fills the only directory in the PATH of kube-proxy. With modprobe and nft in its PATH, kube-proxy
// would also delete what may be rules of other programs, as leftovers of its other modes.
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
