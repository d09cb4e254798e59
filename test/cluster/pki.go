//go:build linux

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// certificates returns the templates of the certificates that the cluster's authority issues. Kubernetes takes the
// common name and the organization of a client certificate for its user and group.
func certificates() map[string]*x509.Certificate {
	certificate := func(user, group string, names ...string) *x509.Certificate {
		template := &x509.Certificate{
			Subject:     pkix.Name{CommonName: user},
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
			IPAddresses: []net.IP{net.ParseIP(nodeIP), net.ParseIP(serviceIP)},
			DNSNames:    names,
		}
		if group != "" {
			template.Subject.Organization = []string{group}
		}
		return template
	}
	return map[string]*x509.Certificate{
		"admin": certificate("admin", "system:masters"),
		"apiserver": certificate("kube-apiserver", "", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"),
		"apiserver-kubelet": certificate("kube-apiserver-kubelet-client", "system:masters"),
		"catalogd": certificate("catalogd", "", "localhost", "catalogd-service."+olmv1Namespace+".svc",
			"catalogd-service."+olmv1Namespace+".svc.cluster.local"),
		"controller-manager": certificate("system:kube-controller-manager", ""),
		"coredns":            certificate("system:coredns", ""),
		"etcd":               certificate("etcd", ""),
		"front-proxy":        certificate("front-proxy", ""),
		"kubelet":            certificate("system:node:"+nodeName, "system:nodes", nodeName),
		"operator-controller": certificate("operator-controller", "", "operator-controller-service."+olmv1Namespace+".svc",
			"operator-controller-service."+olmv1Namespace+".svc.cluster.local"),
		"proxy":            certificate("system:kube-proxy", ""),
		"registry":         certificate("registry", ""),
		"scheduler":        certificate("system:kube-scheduler", ""),
		"service-accounts": certificate("service-accounts", ""), // its key signs the tokens of service accounts
	}
}

// cert and key return the paths of a certificate and its key.
func (c *cluster) cert(name string) string { return c.path("pki", name+".crt") }
func (c *cluster) key(name string) string  { return c.path("pki", name+".key") }

// writeCertificates issues the certificates that are missing.
func (c *cluster) writeCertificates() error {
	err := c.issue("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: "memcached-operator test cluster"},
		IsCA:    true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil)
	if err != nil {
		return err
	}
	authority, err := tls.LoadX509KeyPair(c.cert("ca"), c.key("ca"))
	if err != nil {
		return err
	}
	for name, template := range certificates() {
		if err := c.issue(name, template, &authority); err != nil {
			return err
		}
	}
	return nil
}

// issue writes a certificate and its key unless they exist. Without an authority the certificate is self-signed. The
// certificate is written last: if it exists, its key does.
func (c *cluster) issue(name string, template *x509.Certificate, authority *tls.Certificate) error {
	if exists(c.cert(name)) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if authority == nil {
		authority = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.AddDate(10, 0, 0)
	certificate, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(c.key(name), "EC PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	return writePEM(c.cert(name), "CERTIFICATE", certificate, 0o644)
}

func writePEM(path, kind string, content []byte, mode os.FileMode) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), mode)
}

// connect sets the HTTP client of the cluster's administrator.
func (c *cluster) connect() error {
	admin, err := tls.LoadX509KeyPair(c.cert("admin"), c.key("admin"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(c.cert("ca"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return errors.New(c.cert("ca") + " is not a certificate")
	}
	c.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{admin}, RootCAs: roots},
	}}
	return nil
}
