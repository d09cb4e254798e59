package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Intervals of the renewer. The kubelet needs up to 90 s to mount a changed Secret.
const (
	readInterval  = 5 * time.Second
	checkInterval = time.Minute
)

// renewer makes memcached serve the certificate of a source, also after it has changed.
type renewer struct {
	source source
	store  store
	node   node
	log    *slog.Logger

	mu    sync.Mutex
	state state
}

// state is what the metrics show.
type state struct {
	isUsable   bool              // the source has a certificate that memcached can serve
	isCurrent  bool              // memcached serves it
	served     *x509.Certificate // nil as long as it is unknown
	isLoaded   bool              // memcached has loaded what is stored since this program started
	checked    time.Time         // when it was last compared with what memcached serves
	problem    string            // why the certificate is not usable or not served; "" if it is
	reloads    float64
	failures   float64
	lastReload time.Time
}

// run renews the certificate until ctx is canceled.
func (r *renewer) run(ctx context.Context) {
	r.node.wait(ctx)
	ticker := time.NewTicker(readInterval)
	defer ticker.Stop()
	for {
		r.renew(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// observed returns the state for the metrics.
func (r *renewer) observed() state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// renew reads the source once and, if it has changed, makes memcached load it. A problem is logged when it begins, and
// when it ends; the certificate that memcached has keeps serving.
func (r *renewer) renew(ctx context.Context, now time.Time) {
	next := r.observed()
	err := r.step(ctx, now, &next)
	if next.problem != "" && err == nil {
		r.log.Info("The problem has ended", "problem", next.problem)
	}
	was := next.problem
	next.problem = ""
	if err != nil {
		next.problem = err.Error()
		if next.problem != was && ctx.Err() == nil {
			r.log.Error("The certificate cannot be renewed; the one that memcached has loaded keeps serving", "err", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = next
}

// step does the work of renew, and notes in s what it finds.
func (r *renewer) step(ctx context.Context, now time.Time, s *state) error {
	wanted, err := r.source.read(now)
	if s.isUsable = err == nil; !s.isUsable {
		s.isCurrent = false
		return err
	}
	hasChanged, err := r.store.write(wanted)
	if err != nil {
		return err
	}
	if hasChanged {
		s.isLoaded = false
	}
	if s.isLoaded && s.isCurrent && now.Sub(s.checked) < checkInterval {
		return nil
	}
	// Once after each start: an earlier process may have ended between storing a certificate and loading it.
	if !s.isLoaded || !s.isCurrent {
		if err := r.node.reload(ctx); err != nil {
			s.isCurrent, s.failures = false, s.failures+1
			return fmt.Errorf("memcached does not load the certificate: %w", err)
		}
	}
	served, err := r.node.served(ctx)
	if err != nil {
		s.isCurrent, s.failures = false, s.failures+1
		return fmt.Errorf("handshake with memcached: %w", err)
	}
	s.served, s.checked = served, now
	if !served.Equal(wanted.leaf) {
		s.isCurrent, s.failures = false, s.failures+1
		return fmt.Errorf("memcached serves the certificate %s instead of %s", fingerprint(served), fingerprint(wanted.leaf))
	}
	if !s.isLoaded || !s.isCurrent {
		s.isLoaded, s.isCurrent, s.reloads, s.lastReload = true, true, s.reloads+1, now
		r.log.Info("Memcached serves the certificate", "sha256", fingerprint(served), "notAfter", served.NotAfter)
	}
	return nil
}

// fingerprint returns the SHA-256 fingerprint of a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
