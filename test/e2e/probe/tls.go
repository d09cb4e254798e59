package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// identities are the CAs and certificates in a directory: the CA that has signed the certificate of the nodes, another
// one, a certificate of each for clients.
type identities struct {
	ca, otherCA     *x509.CertPool
	client, strange tls.Certificate
}

func readIdentities(dir string) (*identities, error) {
	i := &identities{ca: x509.NewCertPool(), otherCA: x509.NewCertPool()}
	for name, pool := range map[string]*x509.CertPool{"ca.crt": i.ca, "other-ca.crt": i.otherCA} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s has no certificate", name)
		}
	}
	for name, pair := range map[string]*tls.Certificate{"client": &i.client, "strange": &i.strange} {
		var err error
		path := filepath.Join(dir, name)
		if *pair, err = tls.LoadX509KeyPair(path+".crt", path+".key"); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// tlsClients prints what a node answers to clients of all sorts: "VERSION ..." or an error.
func tlsClients(dir, name, node string) error {
	i, err := readIdentities(dir)
	if err != nil {
		return err
	}
	known := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.ca, ServerName: name}
	with := func(change func(*tls.Config)) *tls.Config {
		config := known.Clone()
		change(config)
		return config
	}
	for _, client := range []struct {
		name   string
		config *tls.Config // nil for plaintext
	}{
		{"plaintext", nil},
		{"with-ca", known},
		{"with-other-ca", with(func(c *tls.Config) { c.RootCAs = i.otherCA })},
		{"with-other-name", with(func(c *tls.Config) { c.ServerName = "example.com" })},
		{"with-certificate", with(func(c *tls.Config) { c.Certificates = []tls.Certificate{i.client} })},
		{"with-certificate-tls12", with(func(c *tls.Config) {
			c.Certificates, c.MaxVersion = []tls.Certificate{i.client}, tls.VersionTLS12
		})},
		{"with-strange-certificate", with(func(c *tls.Config) { // also where the server does not list its CA
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &i.strange, nil }
		})},
	} {
		answer, err := askVersion(node, client.config)
		if err != nil {
			answer = "refused: " + err.Error()
		}
		fmt.Println(client.name, answer)
	}
	return nil
}

// askVersion asks a node for its version over a new connection.
func askVersion(node string, config *tls.Config) (string, error) {
	connection, err := dial(node, config)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	return ask(connection, "version", "VERSION ")
}

// dial opens a connection with a deadline, without TLS if config is nil.
func dial(node string, config *tls.Config) (net.Conn, error) {
	return dialWithin(node, config, timeout)
}

// dialWithin is dial with another timeout.
func dialWithin(node string, config *tls.Config, timeout time.Duration) (net.Conn, error) {
	connection, err := net.DialTimeout("tcp", node, timeout)
	if err != nil {
		return nil, err
	}
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil || config == nil {
		return connection, err
	}
	secure := tls.Client(connection, config)
	if err := secure.Handshake(); err != nil {
		_ = connection.Close()
		return nil, err
	}
	return secure, nil
}

// ask sends a request and returns the first line of the answer, which must begin as wanted.
func ask(connection net.Conn, request, want string) (string, error) {
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, request+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	line = strings.TrimSpace(line)
	if err == nil && !strings.HasPrefix(line, want) {
		err = fmt.Errorf("the answer to %q is %q", request, line)
	}
	return line, err
}

// follow keeps a connection to each node (NAME@ADDRESS) open and reads an item over it, and makes a handshake every
// half second. It prints the certificate when it changes, and every error, until it is killed.
func follow(args []string) error {
	i, err := readIdentities(args[0])
	if err != nil {
		return err
	}
	type target struct {
		node, serves string
		config       *tls.Config
		open         net.Conn
	}
	var targets []*target
	for _, arg := range args[1:] {
		name, node, _ := strings.Cut(arg, "@")
		t := &target{node: node, config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.ca, ServerName: name,
			Certificates: []tls.Certificate{i.client}}}
		if t.open, err = dial(node, t.config); err != nil {
			return err
		}
		if _, err := ask(t.open, "set kept 0 0 1\r\nx", "STORED"); err != nil {
			return err
		}
		targets = append(targets, t)
	}
	for ; ; time.Sleep(500 * time.Millisecond) {
		for _, t := range targets {
			if _, err := ask(t.open, "get kept", "VALUE kept 0 1"); err != nil {
				fmt.Println(t.node, "error on the open connection:", err)
			}
			connection, err := dial(t.node, t.config)
			if err != nil {
				fmt.Println(t.node, "error of a handshake:", err)
				continue
			}
			chain := connection.(*tls.Conn).ConnectionState().PeerCertificates
			sum := sha256.Sum256(chain[0].Raw)
			if serves := hex.EncodeToString(sum[:]); serves != t.serves {
				t.serves = serves
				fmt.Println(t.node, "serves", serves, time.Now().UnixMilli())
			}
			_ = connection.Close()
		}
	}
}

// move asks the nodes of a Service all the time, over TLS as soon as all nodes offer it, until they offer nothing else.
// If a node does not answer it asks the next one. It prints how many requests no node has answered.
func move(dir, name, nodes string) error {
	i, err := readIdentities(dir)
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: i.ca, ServerName: name}
	var answered, failedOver, unanswered, overTLS, last int
	var records []*net.SRV
	var with *tls.Config
	for end := time.Now().Add(10 * time.Minute); last < 50; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("the nodes never offered TLS only")
		}
		_, secure, _ := net.LookupSRV("memcached-tls", "tcp", name)
		_, plain, _ := net.LookupSRV("memcached", "tcp", name)
		switch { // without an answer from DNS, the latest one counts
		case fmt.Sprint(len(secure)) == nodes, len(plain) == 0 && len(secure) > 0:
			records, with = secure, config
		case len(plain) > 0:
			records, with = plain, nil
		}
		if last++; len(secure) == 0 || len(plain) > 0 {
			last = 0
		}
		isAnswered := false
		for n, record := range records {
			_, err := askVersion(net.JoinHostPort(record.Target, fmt.Sprint(record.Port)), with)
			if isAnswered = err == nil; isAnswered {
				failedOver += min(n, 1)
				break
			}
		}
		if !isAnswered {
			unanswered++
			fmt.Println("no node answers:", len(plain), len(secure))
			continue
		}
		if answered++; with != nil {
			overTLS++
		}
		if answered == 1 {
			fmt.Println("started")
		}
	}
	fmt.Printf("%d answered, %d of them over TLS, %d by another node than the first; %d not answered\n", answered, overTLS,
		failedOver, unanswered)
	return nil
}

// fetch prints the lines of pages that begin with a word.
func fetch(word string, urls []string) error {
	client := http.Client{Timeout: timeout}
	for _, url := range urls {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), word) {
				fmt.Println(lines.Text())
			}
		}
		_ = response.Body.Close()
	}
	return nil
}
