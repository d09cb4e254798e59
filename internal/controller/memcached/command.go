package memcached

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

// command returns the command that runs memcached. It starts as in release 0.2.0, and has further arguments only for
// settings that differ from memcached's own defaults, because every change restarts the nodes. All have the form
// --name=value: memcached parses -m=64 as 0 and exits.
func command(s settings) []string {
	args := []string{"memcached", fmt.Sprintf("--memory-limit=%d", s.memory/mebibyte), "-o", "modern"}
	if s.verbosity > 0 {
		args = append(args, "-"+strings.Repeat("v", int(s.verbosity)))
	}
	add := func(isSet bool, format string, values ...any) {
		if isSet {
			args = append(args, fmt.Sprintf(format, values...))
		}
	}
	if s.tls != nil {
		args = append(args, tlsArguments(s)...)
	} else {
		add(s.port != defaultPort, "--port=%d", s.port)
	}
	add(s.maxItemSize != defaultMaxItemSize, "--max-item-size=%d", s.maxItemSize)
	add(s.maxConnections != defaultMaxConnections, "--conn-limit=%d", s.maxConnections)
	add(s.threads != defaultThreads, "--threads=%d", s.threads)
	add(s.whenFull == cachev1alpha1.RejectWhenFull, "--disable-evictions")
	add(slices.Contains(s.disabled, cachev1alpha1.FlushCommand), "--disable-flush-all")
	add(slices.Contains(s.disabled, cachev1alpha1.DumpCommand), "--disable-dumping")
	add(slices.Contains(s.disabled, cachev1alpha1.WatchCommand), "--disable-watch")
	add(s.idleTimeout > 0, "--extended=idle_timeout=%d", s.idleTimeout)
	for _, name := range slices.Sorted(maps.Keys(s.options)) {
		option := name
		if value := s.options[name]; value != "" {
			option += "=" + string(value)
		}
		args = append(args, "--extended="+option)
	}
	return args
}

// tlsArguments returns the arguments for TLS. Memcached listens on all interfaces for clients, and without TLS on the
// loopback interface for the agent, which writes the files.
func tlsArguments(s settings) []string {
	listen := fmt.Sprintf("--listen=notls:127.0.0.1:%d,*:%d", agentPort, s.tls.port)
	if s.tls.hasPlaintext {
		listen += fmt.Sprintf(",notls:*:%d", s.port)
	}
	args := []string{"--enable-ssl", listen,
		"--extended=ssl_chain_cert=" + storePath + "/" + pairFile, "--extended=ssl_key=" + storePath + "/" + pairFile}
	if s.tls.minVersion == cachev1alpha1.TLS13 { // memcached's own minimum is TLS 1.2
		args = append(args, "--extended=ssl_min_version=3")
	}
	switch s.tls.clients {
	case cachev1alpha1.ClientCertificatesOptional:
		args = append(args, "--extended=ssl_verify_mode=1")
	case cachev1alpha1.ClientCertificatesRequired:
		args = append(args, "--extended=ssl_verify_mode=2")
	}
	if s.tls.clients != "" {
		args = append(args, "--extended=ssl_ca_cert="+storePath+"/"+caFile)
	}
	return args
}
