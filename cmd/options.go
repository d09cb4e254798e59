package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Images that are used where the environment names none. A deployment names them (config/manager), by digest if it can,
// so that OLM knows them too.
const (
	defaultNginxImage     = "nginx:latest"
	defaultMemcachedImage = "docker.io/library/memcached:1.6.45-alpine"
)

// leaseName is the name of the leader election's Lease. It must never change, or two managers lead during an upgrade.
const leaseName = "memcached-operator.example.com"

// environment is the part of --help that is not about flags.
const environment = `
Environment:
  KUBECONFIG               the kubeconfig, where --kubeconfig does not name one; in a pod, the service account
  WATCH_NAMESPACE          the namespaces to work in, comma-separated; empty for all
  RELATED_IMAGE_NGINX      the image of Foos (default "` + defaultNginxImage + `")
  RELATED_IMAGE_MEMCACHED  the image of Memcacheds (default "` + defaultMemcachedImage + `")
`

// options is what the manager is told by flags and environment.
type options struct {
	controllers             []string
	lease                   string // the leader election's
	workers                 int
	syncPeriod              time.Duration
	imageDelay              time.Duration
	leaderElect             bool
	leaderElectionNamespace string
	metricsAddress          string
	metricsCertDir          string
	probeAddress            string
	pprofAddress            string
	logLevel                slog.Level
	logFormat               string
	version                 bool

	watchNamespaces []string // empty: all
	nginxImage      string
	memcachedImage  string
}

// parse reads flags and environment. An error names what is wrong and the remedy; --help goes to out, and is
// flag.ErrHelp.
func parse(args []string, getenv func(string) string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it
	controllers := flags.String("controllers", "*",
		"The `kinds` to reconcile, comma-separated: "+strings.Join(kindNames(), ", ")+"; or * for all.")
	flags.IntVar(&o.workers, "workers", 8, "How many resources of each kind to reconcile at the same time.")
	flags.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute,
		"How often to look at every resource again although nothing happened. Costs no request while all is as it should be.")
	flags.DurationVar(&o.imageDelay, "image-delay", 2*time.Minute,
		"How long after it has begun to lead a manager leaves what serves with the image it has. Operator Lifecycle "+
			"Manager upgrades to a manager without the Subscription's settings first, and then to one with them.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"Take part in a leader election, so that of several managers one works and the others stand by.")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"The `namespace` of the leader election's Lease. Default: the one the manager runs in.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"The `address` to serve metrics on, by HTTPS and only to who may get the URL /metrics; 0 for none.")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"The `directory` with tls.crt and tls.key for the metrics. Default: a certificate signed by itself.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"The `address` to serve /healthz and /readyz on; 0 for none.")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0",
		"The `address` to serve Go profiles on, without authentication; 0 for none.")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "The lowest `level` to log: debug, info, warn or error.")
	flags.StringVar(&o.logFormat, "log-format", "json", "How to write the log, to standard error: json or text.")
	flags.BoolVar(&o.version, "version", false, "Print the version and exit.")
	config.RegisterFlags(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, "Usage: manager [flags]\n\nFlags:\n")
		flags.SetOutput(out)
		flags.PrintDefaults()
		fmt.Fprint(out, environment)
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w; see --help", err)
	}

	o.watchNamespaces = strings.FieldsFunc(getenv("WATCH_NAMESPACE"), func(r rune) bool { return r == ',' || r == ' ' })
	o.nginxImage = orDefault(getenv("RELATED_IMAGE_NGINX"), defaultNginxImage)
	o.memcachedImage = orDefault(getenv("RELATED_IMAGE_MEMCACHED"), defaultMemcachedImage)

	var err error
	if o.controllers, err = chosen(*controllers); err != nil {
		return nil, err
	}
	o.lease = leaseName
	if *controllers != "*" { // managers of different kinds do not stand in each other's way
		o.lease = strings.Join(o.controllers, "-") + "." + leaseName
	}
	return o, o.validate(flags.Args())
}

func (o *options) validate(rest []string) error {
	var errs []error
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q: all options are flags, see --help", rest[0]))
	}
	if o.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers is %d: it must be at least 1", o.workers))
	}
	if o.syncPeriod < time.Second {
		errs = append(errs, fmt.Errorf("--sync-period is %s: it must be at least 1s", o.syncPeriod))
	}
	if o.imageDelay < 0 {
		errs = append(errs, fmt.Errorf("--image-delay is %s: it must not be negative", o.imageDelay))
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		errs = append(errs, fmt.Errorf("--log-format is %q: it must be json or text", o.logFormat))
	}
	if o.metricsCertDir != "" {
		for _, name := range []string{"tls.crt", "tls.key"} {
			if _, err := os.Stat(o.metricsCertDir + "/" + name); err != nil {
				errs = append(errs, fmt.Errorf("--metrics-cert-dir is %q: %w", o.metricsCertDir, err))
			}
		}
	}
	return errors.Join(errs...)
}

// chosen returns the kinds that --controllers names.
func chosen(list string) ([]string, error) {
	if list == "*" {
		return kindNames(), nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(kindNames(), name) {
			return nil, fmt.Errorf("--controllers names %q: it must be *, or some of %s", name, strings.Join(kindNames(), ","))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (o *options) logHandler(out io.Writer) slog.Handler {
	handlerOptions := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "text" {
		return slog.NewTextHandler(out, handlerOptions)
	}
	return slog.NewJSONHandler(out, handlerOptions)
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
