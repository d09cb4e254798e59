package main

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/memcached_exporter/pkg/exporter"
)

// metricsHandler serves the metrics of memcached, with the names of memcached_exporter, those of the certificate, and
// those of this program.
func metricsHandler(address string, renewer *renewer, log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		exporter.New(address, nodeTimeout, log, nil),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo())
	if renewer.source.isSet() {
		registry.MustRegister(certificateCollector{renewer})
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	return mux
}

func buildInfo() prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "memcached_agent_build_info",
		Help:        "Always 1; the label is the version of the agent.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	info.Set(1)
	return info
}

// certificateCollector collects the state of a renewer.
type certificateCollector struct{ renewer *renewer }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("memcached_agent_certificate_"+name, help, labels, nil)
}

var (
	usableMetric  = describe("usable", "Whether memcached can serve the certificate that is mounted: 1 or 0.")
	currentMetric = describe("current", "Whether memcached serves the certificate that is mounted: 1 or 0.")
	notBefore     = describe("not_before_timestamp_seconds", "From when the certificate that memcached serves is valid.")
	notAfter      = describe("not_after_timestamp_seconds", "Until when the certificate that memcached serves is valid.")
	reloads       = describe("reloads_total", "How often memcached was made to load a certificate.", "result")
	lastReload    = describe("last_reload_timestamp_seconds", "When memcached last loaded a certificate.")
)

// Describe implements prometheus.Collector.
func (c certificateCollector) Describe(all chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{usableMetric, currentMetric, notBefore, notAfter, reloads, lastReload} {
		all <- metric
	}
}

// Collect implements prometheus.Collector.
func (c certificateCollector) Collect(all chan<- prometheus.Metric) {
	state := c.renewer.observed()
	gauge := func(description *prometheus.Desc, value float64) {
		all <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value)
	}
	gauge(usableMetric, number(state.isUsable))
	gauge(currentMetric, number(state.isCurrent))
	all <- prometheus.MustNewConstMetric(reloads, prometheus.CounterValue, state.reloads, "success")
	all <- prometheus.MustNewConstMetric(reloads, prometheus.CounterValue, state.failures, "error")
	if state.served != nil {
		gauge(notBefore, seconds(state.served.NotBefore))
		gauge(notAfter, seconds(state.served.NotAfter))
	}
	if !state.lastReload.IsZero() {
		gauge(lastReload, seconds(state.lastReload))
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.Unix()) }
