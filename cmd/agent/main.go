// Command agent runs beside memcached in the pods of a Memcached with TLS or metrics.
//
//	agent prepare   is an init container: it checks the certificate and copies it to where memcached reads it
//	agent           is a sidecar: it makes memcached load renewed certificates, and serves metrics
//
// Memcached never reads the mounted Secret itself. Any client can make it load its files again (the command
// refresh_certs), also when the kubelet has just mounted a certificate that does not match its key, and then every
// handshake fails. The agent copies only certificates that it has checked.
//
// The agent has a version of its own, in the file VERSION: another image restarts the nodes that it runs in.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// version is set by the linker; see the file VERSION.
var version = "devel"

// memoryLimit is below the memory limit of the container, 32 MiB, so that garbage is collected in time.
const memoryLimit = 24 << 20

// prepareTimeout is how long "agent prepare" waits for a usable certificate. The kubelet mounts a Secret that is
// created after the pod within about a minute; the restarts of the container cover that.
const prepareTimeout = 30 * time.Second

// options are the values of the flags.
type options struct {
	source         source
	store          store
	node           node
	metricsAddress string
}

func main() {
	debug.SetMemoryLimit(memoryLimit)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err) // the kubelet copies the end of the log into the status of the pod
		os.Exit(1)
	}
}

// run runs the command until ctx is canceled.
func run(ctx context.Context, args []string, out io.Writer) error {
	isPreparing := len(args) > 0 && args[0] == "prepare"
	if isPreparing {
		args = args[1:]
	}
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(out, nil))
	if isPreparing {
		return prepare(ctx, o.source, o.store)
	}
	renewer := &renewer{source: o.source, store: o.store, node: o.node, log: log}
	serving := make(chan error, 1)
	if o.metricsAddress != "" {
		listener, err := net.Listen("tcp", o.metricsAddress)
		if err != nil {
			return fmt.Errorf("serving metrics: %w", err)
		}
		server := &http.Server{Handler: metricsHandler(o.node.address, renewer, log), ReadHeaderTimeout: 5 * time.Second}
		go func() { serving <- server.Serve(listener) }()
	}
	log.Info("Starting", "version", version, "tls", o.source.isSet(), "metrics", o.metricsAddress)
	if o.source.isSet() {
		go renewer.run(ctx)
	}
	select {
	case <-ctx.Done():
		return nil // at once: the end of the pod must not wait for requests
	case err := <-serving:
		return fmt.Errorf("serving metrics: %w", err)
	}
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.node.address, "node", "127.0.0.1:11211", "The `address` of memcached without TLS.")
	flags.StringVar(&o.node.tlsAddress, "node-tls", "127.0.0.1:11212", "The `address` of memcached with TLS.")
	flags.StringVar(&o.metricsAddress, "metrics", "", "The `address` of the metrics endpoint; empty for none.")
	flags.StringVar(&o.source.secret, "secret", "", "The `name` of the Secret with the certificate; empty without TLS.")
	flags.StringVar(&o.source.ca, "ca", "", "The CA of clients, such as \"Secret clients\"; empty for none.")
	flags.StringVar(&o.source.dir, "secret-dir", "/etc/memcached-agent/certificate", "Where the Secret is mounted.")
	flags.StringVar(&o.source.caDir, "ca-dir", "/etc/memcached-agent/ca", "Where the CA of clients is mounted.")
	flags.StringVar(&o.store.dir, "store", "/run/memcached-certificates", "Where memcached reads its certificate.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: see --help", flags.Arg(0))
	}
	return o, nil
}

// prepare stores the certificate once it is usable. Its error says what to change.
func prepare(ctx context.Context, source source, store store) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	for {
		found, err := source.read(time.Now())
		if err == nil {
			_, err := store.write(found)
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}
