package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// "make agent-test" sets it to each memcached that the cluster of the end-to-end tests has.
var memcached = flag.String("memcached", "", "command of a memcached with TLS; without it, tests with it are skipped")

// keyPair is a certificate and its private key, in PEM format.
type keyPair struct {
	certificate, key []byte
	parsed           *x509.Certificate
	signer           *ecdsa.PrivateKey
}

var serial = new(big.Int)

// issue returns a certificate for 127.0.0.1 that an issuer has signed, or itself without one.
func issue(t *testing.T, issuer *keyPair, validFor time.Duration) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial.Add(serial, big.NewInt(1))
	template := &x509.Certificate{
		SerialNumber: new(big.Int).Set(serial), Subject: pkix.Name{CommonName: serial.String()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: issuer == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.parsed, issuer.signer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), parsed, key,
	}
}

// mount replaces the content of a mounted directory at once, as the kubelet does.
func mount(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	data, err := os.MkdirTemp(dir, "..version")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "..data")
	if err := os.Symlink(filepath.Base(data), link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
}

func files(pair keyPair) map[string][]byte {
	return map[string][]byte{certificateKey: pair.certificate, privateKeyKey: pair.key}
}

func TestRead(t *testing.T) {
	ca := issue(t, nil, time.Hour)
	good, other, expired := issue(t, &ca, time.Hour), issue(t, &ca, time.Hour), issue(t, &ca, -time.Minute)
	join := func(all ...[]byte) []byte { return bytes.Join(all, nil) }
	for _, test := range []struct {
		name    string
		secret  map[string][]byte
		ca      map[string][]byte
		message string // "" if it is usable
	}{
		{"a certificate", files(good), nil, ""},
		{"a chain", map[string][]byte{certificateKey: join(good.certificate, ca.certificate), privateKeyKey: good.key},
			nil, ""},
		{"the CA of clients", files(good), map[string][]byte{caKey: ca.certificate}, ""},
		{"missing", nil, nil, "Secret web does not exist or is empty: create it with the key tls.crt and the key tls.key: " +
			"kubectl create secret tls web --cert=FILE --key=FILE"},
		{"of another type", map[string][]byte{"password": []byte("x")}, nil, "Secret web has no key tls.crt: add it"},
		{"without tls.key", map[string][]byte{certificateKey: good.certificate}, nil,
			"Secret web has no key tls.key: add it"},
		{"with an empty tls.key", map[string][]byte{certificateKey: good.certificate, privateKeyKey: []byte("\n")}, nil,
			"Secret web: the key tls.key is empty: fill it"},
		{"garbage", map[string][]byte{certificateKey: []byte("garbage"), privateKeyKey: good.key}, nil,
			"Secret web: tls.crt and tls.key are no pair"},
		{"half-written", map[string][]byte{certificateKey: good.certificate[:200], privateKeyKey: good.key}, nil,
			"Secret web: tls.crt and tls.key are no pair"},
		{"a key that does not match", map[string][]byte{certificateKey: good.certificate, privateKeyKey: other.key}, nil,
			"Secret web: tls.crt and tls.key are no pair that can be used (tls: private key does not match public key)"},
		{"a chain in the wrong order",
			map[string][]byte{certificateKey: join(good.certificate, other.certificate), privateKeyKey: good.key}, nil,
			"Secret web: tls.crt: certificate 1 is not signed by certificate 2"},
		{"expired", files(expired), nil, "Secret web: the certificate expired at "},
		{"without the CA of clients", files(good), map[string][]byte{},
			"ConfigMap clients does not exist or is empty: create it with the key ca.crt"},
		{"with another key than ca.crt", files(good), map[string][]byte{"ca.pem": ca.certificate},
			"ConfigMap clients has no key ca.crt: add it"},
		{"garbage as CA of clients", files(good), map[string][]byte{caKey: []byte("garbage")},
			"ConfigMap clients: ca.crt contains no certificate in PEM format"},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := source{secret: "web", dir: t.TempDir()}
			mount(t, source.dir, test.secret)
			if test.ca != nil {
				source.ca, source.caDir = "ConfigMap clients", t.TempDir()
				mount(t, source.caDir, test.ca)
			}
			_, err := source.read(time.Now())
			switch {
			case test.message == "" && err != nil:
				t.Error(err)
			case test.message != "" && (err == nil || !strings.HasPrefix(err.Error(), test.message)):
				t.Errorf("got %v, want %s", err, test.message)
			}
		})
	}
}

func TestPrepareWaits(t *testing.T) {
	source, store := source{secret: "web", dir: t.TempDir()}, store{t.TempDir()}
	mount(t, source.dir, nil)
	pair := issue(t, nil, time.Hour)
	time.AfterFunc(500*time.Millisecond, func() { mount(t, source.dir, files(pair)) })
	if err := prepare(t.Context(), source, store); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile(filepath.Join(store.dir, pairFile))
	if want := slices.Concat(pair.certificate, pair.key); err != nil || !bytes.Equal(stored, want) {
		t.Errorf("stored other files: %v", err)
	}
	mount(t, source.dir, map[string][]byte{"password": []byte("canary")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := prepare(ctx, source, store); err == nil || err.Error() != "Secret web has no key tls.crt: add it" {
		t.Error(err)
	}
}

// fixture is a memcached, and a renewer of its certificate.
type fixture struct {
	renewer
	logs bytes.Buffer
}

// start starts memcached as the operator does, with clients' certificates required.
func start(t *testing.T, pair, ca keyPair) *fixture {
	t.Helper()
	if *memcached == "" {
		t.Skip("set -memcached")
	}
	f := &fixture{renewer: renewer{
		source: source{secret: "web", dir: t.TempDir(), ca: "ConfigMap clients", caDir: t.TempDir()},
		store:  store{t.TempDir()}, node: node{freeAddress(t), freeAddress(t)},
	}}
	f.log = slog.New(slog.NewJSONHandler(&f.logs, nil))
	mount(t, f.source.dir, files(pair))
	mount(t, f.source.caDir, map[string][]byte{caKey: ca.certificate})
	if err := prepare(t.Context(), f.source, f.store); err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(*memcached), "--memory-limit=64", "--user=root", "--enable-ssl",
		"--listen=notls:"+f.node.address+","+f.node.tlsAddress, "--extended=ssl_verify_mode=2",
		"--extended=ssl_chain_cert="+f.store.dir+"/"+pairFile, "--extended=ssl_key="+f.store.dir+"/"+pairFile,
		"--extended=ssl_ca_cert="+f.store.dir+"/"+caFile)
	command := exec.Command(args[0], args[1:]...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if f.node.wait(ctx); ctx.Err() != nil {
		t.Fatal("memcached does not listen")
	}
	return f
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// client returns an open connection with TLS, or the error of a request over it.
func (f *fixture) client(t *testing.T, pair, ca keyPair) (*tls.Conn, error) {
	t.Helper()
	certificate, err := tls.X509KeyPair(pair.certificate, pair.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.parsed)
	connection, err := tls.Dial("tcp", f.node.tlsAddress,
		&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = connection.Close() })
	_, err = ask(connection, "version")
	return connection, err
}

// ask sends a request and returns the first line of the answer.
func ask(connection net.Conn, request string) (string, error) {
	if err := connection.SetDeadline(time.Now().Add(nodeTimeout)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(connection, request+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	return strings.TrimSpace(line), err
}

// expectServed fails unless new connections get a certificate.
func (f *fixture) expectServed(t *testing.T, pair keyPair) {
	t.Helper()
	served, err := f.node.served(t.Context())
	if err != nil || !served.Equal(pair.parsed) {
		t.Fatalf("another certificate is served (%v)\n%s", err, f.logs.String())
	}
}

func TestRenewal(t *testing.T) {
	ca, otherCA := issue(t, nil, time.Hour), issue(t, nil, time.Hour)
	first, clientPair := issue(t, &ca, time.Hour), issue(t, &ca, time.Hour)
	f := start(t, first, ca)
	f.renew(t.Context(), time.Now())
	f.expectServed(t, first)

	open, err := f.client(t, clientPair, ca)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := ask(open, "set item 0 0 5\r\nvalue"); answer != "STORED" {
		t.Fatal(answer, err)
	}
	if _, err := f.client(t, issue(t, &otherCA, time.Hour), ca); err == nil {
		t.Error("a client with a certificate of another CA was accepted")
	}
	for range 3 {
		current := issue(t, &ca, time.Hour)
		mount(t, f.source.dir, files(current))
		f.renew(t.Context(), time.Now())
		f.expectServed(t, current)
	}
	if answer, err := ask(open, "get item"); answer != "VALUE item 0 5" {
		t.Errorf("the open connection or the item is lost: %q, %v", answer, err)
	}
	// A program that starts anew, as after a crash, loads what is stored once.
	again := &renewer{source: f.source, store: f.store, node: f.node, log: f.log}
	again.renew(t.Context(), time.Now())
	again.renew(t.Context(), time.Now())
	if state := again.observed(); !state.isCurrent || state.reloads != 1 {
		t.Errorf("%+v", state)
	}
	// Another CA of clients counts without a change of the certificate.
	mount(t, f.source.caDir, map[string][]byte{caKey: otherCA.certificate})
	f.renew(t.Context(), time.Now())
	if _, err := f.client(t, issue(t, &otherCA, time.Hour), ca); err != nil {
		t.Error("a client with a certificate of the new CA was refused:", err)
	}
}

func TestUnusableSecretKeepsTheCertificate(t *testing.T) {
	ca := issue(t, nil, time.Hour)
	first, next := issue(t, &ca, time.Hour), issue(t, &ca, time.Hour)
	canary := strings.ReplaceAll(string(next.key), "-----END", "canary-----END")
	for name, bad := range map[string]map[string][]byte{
		"a key that does not match": {certificateKey: next.certificate, privateKeyKey: first.key},
		"garbage":                   {certificateKey: []byte("canary"), privateKeyKey: []byte("canary")},
		"half of a file":            {certificateKey: next.certificate[:300], privateKeyKey: next.key},
		"a damaged key":             {certificateKey: next.certificate, privateKeyKey: []byte(canary)},
		"expired":                   files(issue(t, &ca, -time.Minute)),
		"deleted":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, first, ca)
			f.renew(t.Context(), time.Now())
			mount(t, f.source.dir, bad)
			f.renew(t.Context(), time.Now())
			f.renew(t.Context(), time.Now())
			f.expectServed(t, first)
			// What any client can do.
			if err := f.node.reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.expectServed(t, first)
			if state := f.observed(); state.isUsable || state.isCurrent {
				t.Errorf("%+v", state)
			}
			if n := strings.Count(f.logs.String(), `"level":"ERROR"`); n != 1 {
				t.Errorf("%d errors in the log:\n%s", n, f.logs.String())
			}
			mount(t, f.source.dir, files(next))
			f.renew(t.Context(), time.Now())
			f.expectServed(t, next)
			if state := f.observed(); !state.isUsable || !state.isCurrent {
				t.Errorf("%+v", state)
			}
			if strings.Contains(f.logs.String(), "canary") {
				t.Errorf("the log contains what the Secret contains:\n%s", f.logs.String())
			}
		})
	}
}

// The certificate counts as served only if a handshake shows it.
func TestServedIsChecked(t *testing.T) {
	ca := issue(t, nil, time.Hour)
	f, another := start(t, issue(t, &ca, time.Hour), ca), start(t, issue(t, &ca, time.Hour), ca)
	f.node.tlsAddress = another.node.tlsAddress
	f.renew(t.Context(), time.Now())
	if state := f.observed(); state.isCurrent || state.failures != 1 || !strings.Contains(state.problem, "instead of") {
		t.Errorf("%+v", state)
	}
}

func TestMetrics(t *testing.T) {
	ca := issue(t, nil, time.Hour)
	pair := issue(t, &ca, time.Hour)
	f := start(t, pair, ca)
	f.renew(t.Context(), time.Now())
	answer, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	metricsHandler(f.node.address, &f.renewer, f.log).ServeHTTP(answer, request)
	for _, want := range []string{
		"memcached_up 1", "memcached_limit_bytes 6.7108864e+07", "memcached_agent_certificate_usable 1",
		"memcached_agent_certificate_current 1", `memcached_agent_certificate_reloads_total{result="success"} 1`,
		fmt.Sprintf("memcached_agent_certificate_not_after_timestamp_seconds %v", seconds(pair.parsed.NotAfter)),
		fmt.Sprintf("memcached_agent_build_info{version=%q} 1", version),
	} {
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("no metric %s in\n%s", want, answer.Body.String())
		}
	}
	problems, err := promlint.New(strings.NewReader(answer.Body.String())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems { // those of the exporter keep their names
		if strings.HasPrefix(problem.Metric, "memcached_agent_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}
