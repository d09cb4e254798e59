package main

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
)

func TestSelfSign(t *testing.T) {
	config := &tls.Config{}
	selfSign(config)
	first, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := config.GetCertificate(nil); again != first || err != nil {
		t.Errorf("each connection gets another certificate, %v", err)
	}
	certificate, err := x509.ParseCertificate(first.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	for _, host := range []string{"localhost", "127.0.0.1"} {
		if _, err := certificate.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
