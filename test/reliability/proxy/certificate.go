package proxy

import (
	"crypto/tls"
	"sync"

	"k8s.io/client-go/util/cert"
)

// serving is what all proxies have: a certificate for the loopback interface, and what it is signed by, as PEM.
type serving struct {
	certificate tls.Certificate
	authority   []byte
}

// certificate makes them once: that takes a moment.
var certificate = sync.OnceValues(func() (serving, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return serving{}, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	return serving{pair, certPEM}, err
})
