package memcached

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// Defaults of fields that the schema leaves without a value. memcached itself has the same ones, except for verbosity.
const (
	defaultMemory         = 64 * mebibyte
	defaultMaxItemSize    = mebibyte
	defaultMaxConnections = 1024
	defaultThreads        = 4
	defaultVerbosity      = 1
	defaultPort           = 11211
	defaultTLSPort        = 11212
	// defaultWarmupSeconds applies to StatefulSets. Grafana's caches wait as long between two nodes (mimir#13495).
	defaultWarmupSeconds = 60
)

const mebibyte int64 = 1 << 20

// settings are the fields of a spec with the defaults filled in.
type settings struct {
	memory         int64 // bytes for items, whole MiB
	maxItemSize    int64 // bytes
	maxConnections int32
	threads        int32
	whenFull       cachev1alpha1.FullPolicy
	idleTimeout    int32 // seconds; 0 for never
	verbosity      int32
	disabled       []cachev1alpha1.Command
	options        map[string]cachev1alpha1.OptionValue
	port           int32
	warmup         int32 // seconds
	tls            *tlsSettings
	hasMetrics     bool
	resources      corev1.ResourceRequirements
}

// tlsSettings are the fields of spec.tls with the defaults filled in.
type tlsSettings struct {
	secret          string
	port            int32
	hasPlaintext    bool
	minVersion      cachev1alpha1.TLSVersion
	clients         cachev1alpha1.ClientCertificateMode // "" if clients need no certificate
	caSecret, caMap string                              // either is set if clients is
}

// settingsOf returns the settings of a Memcached.
func settingsOf(mc *cachev1alpha1.Memcached) settings {
	config := ptr.Deref(mc.Spec.Config, cachev1alpha1.MemcachedConfig{})
	s := settings{
		maxItemSize:    defaultMaxItemSize,
		maxConnections: orDefault(config.MaxConnections, defaultMaxConnections),
		threads:        orDefault(config.Threads, defaultThreads),
		whenFull:       orDefault(config.WhenFull, cachev1alpha1.EvictWhenFull),
		idleTimeout:    ptr.Deref(config.IdleTimeoutSeconds, 0),
		verbosity:      ptr.Deref(config.Verbosity, defaultVerbosity),
		disabled:       config.DisabledCommands,
		options:        config.Options,
		port:           orDefault(mc.Spec.ContainerPort, defaultPort),
		tls:            tlsSettingsOf(mc.Spec.TLS),
		hasMetrics:     ptr.Deref(mc.Spec.Metrics, cachev1alpha1.Metrics{}).Mode == cachev1alpha1.MetricsExporter,
	}
	if config.MaxItemSize != nil {
		s.maxItemSize = config.MaxItemSize.Value()
	}
	if mc.Spec.WorkloadType == cachev1alpha1.StatefulSetWorkload {
		s.warmup = defaultWarmupSeconds
	}
	s.warmup = ptr.Deref(mc.Spec.WarmupSeconds, s.warmup)

	resources := ptr.Deref(mc.Spec.Resources, cachev1alpha1.Resources{})
	limit, isLimited := resources.Limits[corev1.ResourceMemory]
	switch {
	case config.Memory != nil:
		s.memory = config.Memory.Value()
	case isLimited:
		s.memory = s.fits(limit.Value())
	default:
		s.memory = defaultMemory
	}
	s.resources = s.merged(resources)
	return s
}

func tlsSettingsOf(given cachev1alpha1.TLS) *tlsSettings {
	if given.SecretName == "" { // required, so spec.tls is not set
		return nil
	}
	clients := given.ClientCertificates
	return &tlsSettings{
		secret:       given.SecretName,
		port:         orDefault(given.Port, defaultTLSPort),
		hasPlaintext: given.Plaintext == cachev1alpha1.PlaintextEnabled,
		minVersion:   orDefault(given.MinVersion, cachev1alpha1.TLS12),
		clients:      clients.Mode,
		caSecret:     clients.CASecretName,
		caMap:        clients.CAConfigMapName,
	}
}

// hasPlaintext reports whether nodes serve clients without TLS.
func (s settings) hasPlaintext() bool { return s.tls == nil || s.tls.hasPlaintext }

// isPaused reports whether the operator leaves the children of a Memcached as they are.
func isPaused(mc *cachev1alpha1.Memcached) bool { return ptr.Deref(mc.Spec.Paused, false) }

// orDefault returns the value, or the default if the field is not set.
func orDefault[T comparable](value, byDefault T) T {
	var unset T
	if value == unset {
		return byDefault
	}
	return value
}

// merged returns the resources of the container: those of the spec, and where they do not have them the memory that a
// node needs, and a request for CPU time without a limit, because throttling shows as latency. Every cache fills up, so
// the request for memory equals the limit.
func (s settings) merged(given cachev1alpha1.Resources) corev1.ResourceRequirements {
	limits, requests := given.Limits.DeepCopy(), given.Requests.DeepCopy()
	if limits == nil {
		limits = corev1.ResourceList{}
	}
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	if _, ok := limits[corev1.ResourceMemory]; !ok {
		limits[corev1.ResourceMemory] = s.needs()
		if request := requests[corev1.ResourceMemory]; request.Cmp(limits[corev1.ResourceMemory]) > 0 {
			limits[corev1.ResourceMemory] = request
		}
	}
	if _, ok := requests[corev1.ResourceMemory]; !ok {
		requests[corev1.ResourceMemory] = limits[corev1.ResourceMemory]
	}
	if _, ok := requests[corev1.ResourceCPU]; !ok {
		requests[corev1.ResourceCPU] = resource.MustParse("50m")
		if limit, isLimited := limits[corev1.ResourceCPU]; isLimited && limit.Cmp(requests[corev1.ResourceCPU]) < 0 {
			requests[corev1.ResourceCPU] = limit
		}
	}
	return corev1.ResourceRequirements{Limits: limits, Requests: requests}
}

// What a node needs besides the memory for items, in MiB. docs/memcached-sizing.md has the measurements.
const (
	growth     = 1.07 // of the memory for items: the hash table, while it grows, and fragmentation
	margin     = 1.05 // of everything: what a kernel or a C library counts otherwise
	program    = 32.0
	firstPages = 40.0        // each slab class may take its first page of 1 MiB also when the memory is full
	perThread  = 1.0         // log and write buffers
	perClient  = 8.0 / 1024  // each connection
	perTLS     = 48.0 / 1024 // each connection with TLS
	perRequest = 32.0 / 1024
	busy       = 0.25 // the part of the connections that have buffers for a request at the same time
)

// needs returns the memory limit that a full node stays below, rounded down to whole MiB: with the default settings
// that is exactly the limit of earlier releases.
func (s settings) needs() resource.Quantity {
	mib := math.Floor(margin * (growth*float64(s.memory/mebibyte) + s.overhead()))
	return *resource.NewQuantity(int64(mib)*mebibyte, resource.BinarySI)
}

// fits returns the memory for items, in bytes and whole MiB, of a node that needs at most a limit: the inverse of
// needs. It is at least the minimum of 8 MiB; then the limit may be too low.
func (s settings) fits(limit int64) int64 {
	mib := int64((float64(limit/mebibyte)/margin - s.overhead()) / growth)
	return max(mib, 8) * mebibyte
}

// overhead returns what a node needs apart from the memory for items, in MiB.
func (s settings) overhead() float64 {
	connections := float64(s.maxConnections)
	each := perClient
	if s.tls != nil {
		each = perTLS
	}
	return program + firstPages + perThread*float64(s.threads) + each*connections + perRequest*busy*connections
}
