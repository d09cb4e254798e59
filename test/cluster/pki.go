//go:build linux

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"
)

// validity of all certificates: a cluster for tests does not live that long.
const validity = 10 * 365 * 24 * time.Hour

// certificates are those that the cluster's authority issues: each may serve under its names, and be a client by its
// common name and organization, which Kubernetes takes for user and group.
func certificates() map[string]x509.Certificate {
	client := func(user string, groups ...string) x509.Certificate {
		return x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: groups}}
	}
	server := func(user string, names ...string) x509.Certificate {
		certificate := client(user)
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				certificate.IPAddresses = append(certificate.IPAddresses, ip)
			} else {
				certificate.DNSNames = append(certificate.DNSNames, name)
			}
		}
		return certificate
	}
	node := server("system:node:"+nodeName, nodeIP, nodeName)
	node.Subject.Organization = []string{"system:nodes"}
	return map[string]x509.Certificate{
		"admin": client("admin", "system:masters"),
		"apiserver": server("kube-apiserver", nodeIP, serviceIP, "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		"apiserver-kubelet":  client("kube-apiserver-kubelet-client", "system:masters"),
		"controller-manager": server("system:kube-controller-manager", nodeIP),
		"coredns":            client("system:coredns"),
		"etcd":               server("etcd", nodeIP),
		"front-proxy":        client("front-proxy"),
		"kubelet":            node,
		"proxy":              client("system:kube-proxy"),
		"registry":           server("registry", nodeIP),
		"scheduler":          server("system:kube-scheduler", nodeIP),
	}
}

// cert and key are the paths of a certificate and its key.
func (c *cluster) cert(name string) string { return c.path("pki", name+".crt") }
func (c *cluster) key(name string) string  { return c.path("pki", name+".key") }

// writeCertificates issues the certificates that are missing.
func (c *cluster) writeCertificates() error {
	authority, key, err := c.authority()
	if err != nil {
		return err
	}
	// The key that signs the tokens of service accounts.
	if _, err := os.Stat(c.key("service-accounts")); errors.Is(err, os.ErrNotExist) {
		if _, err := writeKey(c.key("service-accounts")); err != nil {
			return err
		}
	}
	for name, template := range certificates() {
		if _, err := os.Stat(c.cert(name)); err == nil {
			continue
		}
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		own, err := writeKey(c.key(name))
		if err != nil {
			return err
		}
		if err := writeCertificate(c.cert(name), &template, authority, own.Public(), key); err != nil {
			return err
		}
	}
	return nil
}

// authority is the cluster's certificate authority, a new one where there is none.
func (c *cluster) authority() (*x509.Certificate, crypto.Signer, error) {
	if _, err := os.Stat(c.cert("ca")); errors.Is(err, os.ErrNotExist) {
		key, err := writeKey(c.key("ca"))
		if err != nil {
			return nil, nil, err
		}
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "memcached-operator test cluster"},
			IsCA:    true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
		if err := writeCertificate(c.cert("ca"), template, template, key.Public(), key); err != nil {
			return nil, nil, err
		}
	}
	pair, err := tls.LoadX509KeyPair(c.cert("ca"), c.key("ca"))
	if err != nil {
		return nil, nil, err
	}
	return pair.Leaf, pair.PrivateKey.(crypto.Signer), nil
}

func writeKey(path string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// writeCertificate fills in what all templates have in common. The certificate is written whole or not at all, for its
// presence says that its key is there too.
func writeCertificate(path string, template, parent *x509.Certificate, key crypto.PublicKey,
	signer crypto.Signer) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, signer)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

// connect makes the client that speaks to the parts as the administrator.
func (c *cluster) connect() error {
	pair, err := tls.LoadX509KeyPair(c.cert("admin"), c.key("admin"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(c.cert("ca"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	c.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots},
	}}
	return nil
}
