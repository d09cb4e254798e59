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

// Default images, used if the environment does not set them. config/manager sets them, so that OLM finds them in the
// Deployment. Releases replace their tags by digests.
const (
	defaultNginxImage     = "nginx:latest"
	defaultMemcachedImage = "docker.io/library/memcached:1.6.45-alpine"
	defaultAgentImage     = "ghcr.io/example/memcached-operator-agent:v0.1.0"
)

// leaseName is the name of the leader election's Lease. It must never change, or two managers would lead during an
// upgrade.
const leaseName = "memcached-operator.example.com"

// environment is the part of --help that documents environment variables.
const environment = `
Environment:
  KUBECONFIG               path of a kubeconfig, if --kubeconfig is not set
  WATCH_NAMESPACE          comma-separated namespaces to watch; empty for all
  RELATED_IMAGE_NGINX      image of Foos (default "` + defaultNginxImage + `")
  RELATED_IMAGE_MEMCACHED  image of Memcached nodes (default "` + defaultMemcachedImage + `")
  RELATED_IMAGE_AGENT      image of the sidecar of nodes with TLS or metrics (default
                           "` + defaultAgentImage + `")
  IMAGE_TAGS               comma-separated DIGEST=TAG: other names of the images above; pods with one are not restarted
  POD_UID                  UID of the manager's pod: a container that crashed leads again once it is restarted
`

// options are the values of flags and environment variables.
type options struct {
	controllers             []string
	lease                   string // name of the leader election's Lease
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

	podUID          string   // empty: unknown
	watchNamespaces []string // empty: all
	nginxImage      string
	memcachedImage  string
	agentImage      string
	imageTags       map[string]string // names of images by tag, by their names by digest
}

// parse reads flags and environment variables. Its errors contain the remedy. For --help, it writes the help to out and
// returns flag.ErrHelp.
func parse(args []string, getenv func(string) string, out io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error contains the message
	controllers := flags.String("controllers", "*",
		"Comma-separated `kinds` to reconcile: "+strings.Join(kindNames(), ", ")+"; * for all. Managers of different kinds "+
			"have separate leader elections. Do not enable one kind in two managers.")
	flags.IntVar(&o.workers, "workers", 8, "Number of resources of each kind reconciled at the same time.")
	flags.DurationVar(&o.syncPeriod, "sync-period", 10*time.Minute,
		"How often every resource is reconciled without an event. Settled resources cost no requests.")
	flags.DurationVar(&o.imageDelay, "image-delay", 2*time.Minute,
		"How long after winning the election the manager keeps the images of running Deployments. OLM upgrades first to a "+
			"manager without the Subscription's settings and moments later to one with them; without the delay, the first "+
			"one would restart every pod.")
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"Take part in a leader election, so that one manager works and the others stand by.")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"The `namespace` of the election's Lease. Default: the manager's namespace. Required outside a cluster.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"The `address` of the metrics endpoint (HTTPS, authenticated); 0 disables it.")
	flags.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"The `directory` with tls.crt and tls.key for the metrics endpoint. Default: a self-signed certificate.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"The `address` of /healthz and /readyz; 0 disables them.")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0",
		"The `address` of Go profiles, without authentication; 0 disables them.")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "The lowest `level` logged: debug, info, warn or error.")
	flags.StringVar(&o.logFormat, "log-format", "json", "The `format` of the log on standard error: json or text.")
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

	o.podUID = getenv("POD_UID")
	o.watchNamespaces = strings.FieldsFunc(getenv("WATCH_NAMESPACE"), func(r rune) bool { return r == ',' || r == ' ' })
	o.nginxImage = orDefault(getenv("RELATED_IMAGE_NGINX"), defaultNginxImage)
	o.memcachedImage = orDefault(getenv("RELATED_IMAGE_MEMCACHED"), defaultMemcachedImage)
	o.agentImage = orDefault(getenv("RELATED_IMAGE_AGENT"), defaultAgentImage)

	var err error
	if o.imageTags, err = parseImageTags(getenv("IMAGE_TAGS")); err != nil {
		return nil, err
	}
	if o.controllers, err = parseControllers(*controllers); err != nil {
		return nil, err
	}
	o.lease = leaseName
	if *controllers != "*" { // managers of different kinds have separate leader elections
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

// parseControllers returns the kinds in the value of --controllers.
func parseControllers(list string) ([]string, error) {
	if list == "*" {
		return kindNames(), nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.Contains(kindNames(), name) {
			return nil, fmt.Errorf("--controllers contains %q: it must be *, or a list of %s", name,
				strings.Join(kindNames(), ","))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// parseImageTags returns the names in the value of IMAGE_TAGS.
func parseImageTags(list string) (map[string]string, error) {
	tags := map[string]string{}
	for pair := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		digest, tag, found := strings.Cut(pair, "=")
		if !found || !strings.Contains(digest, "@") || tag == "" {
			return nil, fmt.Errorf("IMAGE_TAGS contains %q: it must be a list of REPOSITORY@DIGEST=REPOSITORY:TAG", pair)
		}
		tags[digest] = tag
	}
	return tags, nil
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
