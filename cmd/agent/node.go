package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// nodeTimeout is how long memcached may take to answer.
const nodeTimeout = 5 * time.Second

// node is memcached in the same pod.
type node struct {
	address    string // without TLS, on the loopback interface
	tlsAddress string
}

// wait returns when memcached accepts connections, or ctx is canceled: a sidecar starts first.
func (n node) wait(ctx context.Context) {
	for ctx.Err() == nil {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", n.address)
		if err == nil {
			_ = connection.Close()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// reload makes memcached load its certificate again. Open connections stay.
func (n node) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", n.address)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := connection.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(connection, "refresh_certs\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(connection).ReadString('\n')
	if answer = strings.TrimSpace(answer); err == nil && answer != "OK" {
		return fmt.Errorf("memcached did not load the certificate: %q", answer)
	}
	return err
}

// served returns the certificate that memcached serves, from a handshake. With TLS 1.3 a client without a certificate
// gets this far even if clients need one.
func (n node) served(ctx context.Context) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the caller compares the certificate with the one that it expects
	}}
	connection, err := dialer.DialContext(ctx, "tcp", n.tlsAddress)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	chain := connection.(*tls.Conn).ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return nil, errors.New("memcached serves no certificate")
	}
	return chain[0], nil
}
