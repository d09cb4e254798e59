package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Keys of the Secrets and ConfigMaps, as in Secrets of type kubernetes.io/tls and as cert-manager writes them.
const (
	certificateKey = "tls.crt"
	privateKeyKey  = "tls.key"
	caKey          = "ca.crt"
)

// source is where the certificate is mounted.
type source struct {
	secret string // the name of the Secret; "" without TLS
	dir    string // where it is mounted
	ca     string // kind and name of the CA of clients; "" for none
	caDir  string // where it is mounted
}

// certificates are what a source contains, checked.
type certificates struct {
	pair []byte // PEM: the chain of the certificate, and its private key
	ca   []byte // PEM: the CA of clients; nil for none
	leaf *x509.Certificate
}

func (s source) isSet() bool { return s.secret != "" }

// read returns the certificates if memcached can serve them: the key matches the certificate, which is valid now, each
// certificate of the chain is signed by the next one, and the CA can be read. The error names the Secret, the key and
// what to do, and contains nothing of their content.
func (s source) read(now time.Time) (certificates, error) {
	secret := "Secret " + s.secret
	chain, err := s.file(secret, s.dir, certificateKey)
	if err != nil {
		return certificates{}, err
	}
	key, err := s.file(secret, s.dir, privateKeyKey)
	if err != nil {
		return certificates{}, err
	}
	found, err := s.check(chain, key, now)
	if err != nil {
		return certificates{}, fmt.Errorf("%s: %w", secret, err)
	}
	if s.ca == "" {
		return found, nil
	}
	ca, err := s.file(s.ca, s.caDir, caKey)
	if err != nil {
		return certificates{}, err
	}
	if found.ca = certificatesOnly(ca); found.ca == nil || !x509.NewCertPool().AppendCertsFromPEM(found.ca) {
		return certificates{}, fmt.Errorf("%s: %s contains no certificate in PEM format: replace it by that of the CA that "+
			"signs the certificates of clients", s.ca, caKey)
	}
	return found, nil
}

// file returns the content of a key of an object that is mounted in a directory. All keys are read through the link
// that the kubelet replaces at each change, so that they belong together.
func (s source) file(object, dir, key string) ([]byte, error) {
	if data, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = data
	}
	content, err := os.ReadFile(filepath.Join(dir, key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if others, _ := filepath.Glob(filepath.Join(dir, "[^.]*")); len(others) == 0 {
			return nil, fmt.Errorf("%s does not exist or is empty: create it with the key %s", object, s.keys(object))
		}
		return nil, fmt.Errorf("%s has no key %s: add it", object, key)
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(content)) == 0:
		return nil, fmt.Errorf("%s: the key %s is empty: fill it", object, key)
	}
	return content, nil
}

// keys returns what an object must contain.
func (s source) keys(object string) string {
	if object == s.ca && object != "Secret "+s.secret {
		return caKey
	}
	return certificateKey + " and the key " + privateKeyKey +
		": kubectl create secret tls " + s.secret + " --cert=FILE --key=FILE"
}

// check returns the certificates in a chain and a private key.
func (s source) check(chain, key []byte, now time.Time) (certificates, error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return certificates{}, fmt.Errorf("%s and %s are no pair that can be used (%w): replace both", certificateKey,
			privateKeyKey, err)
	}
	all := make([]*x509.Certificate, len(pair.Certificate))
	for i, der := range pair.Certificate {
		if all[i], err = x509.ParseCertificate(der); err != nil {
			return certificates{}, fmt.Errorf("%s: certificate %d cannot be read (%w): replace it", certificateKey, i+1, err)
		}
	}
	for i := 1; i < len(all); i++ {
		if err := all[i-1].CheckSignatureFrom(all[i]); err != nil {
			return certificates{}, fmt.Errorf("%s: certificate %d is not signed by certificate %d (%w): put the certificate of "+
				"the server first, and each issuer after what it has signed", certificateKey, i, i+1, err)
		}
	}
	leaf := all[0]
	switch {
	case now.After(leaf.NotAfter):
		return certificates{}, fmt.Errorf("the certificate expired at %s: renew it", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return certificates{}, fmt.Errorf("the certificate is valid only from %s on: check the clocks, or replace it",
			leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	found := certificates{pair: certificatesOnly(chain), leaf: leaf}
	found.pair = append(found.pair, privateKeyOnly(key)...)
	return found, nil
}

// certificatesOnly returns the certificates of a PEM file, without comments and other blocks.
func certificatesOnly(content []byte) []byte {
	return blocks(content, func(block *pem.Block) bool { return block.Type == "CERTIFICATE" })
}

// privateKeyOnly returns the private key of a PEM file. Files of elliptic curve keys may start with their parameters.
func privateKeyOnly(content []byte) []byte {
	return blocks(content, func(block *pem.Block) bool {
		return block.Type == "PRIVATE KEY" || block.Type == "EC PRIVATE KEY" || block.Type == "RSA PRIVATE KEY"
	})
}

func blocks(content []byte, keep func(*pem.Block) bool) []byte {
	var kept []byte
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if keep(block) {
			kept = append(kept, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	return kept
}
