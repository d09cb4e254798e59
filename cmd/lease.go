package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The defaults of client-go. A leader whose node is lost is replaced after leaseDuration and a wait of its standby,
// which looks every retryPeriod to 2.2 times that. A leader that cannot reach the API server stops after renewDeadline:
// shorter times would make every restart of an API server one of the manager, too.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// newLease returns the Lease of the leader election; nil without one.
//
// A container that crashed leads again as soon as it is restarted, without waiting for its own Lease: the identity is
// that of the pod, and Kubernetes never runs two containers of one name in a pod at once.
func newLease(config *rest.Config, o *options) (resourcelock.Interface, error) {
	if !o.leaderElect {
		return nil, nil
	}
	namespace := o.leaderElectionNamespace
	if namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, fmt.Errorf("the namespace of the Lease is unknown outside a cluster: set "+
				"--leader-election-namespace: %w", err)
		}
		namespace = strings.TrimSpace(string(content))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = renewDeadline / 2 // one request without an answer must not lose the Lease
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return resourcelock.New(resourcelock.LeasesResourceLock, namespace, o.lease, nil, leases,
		resourcelock.ResourceLockConfig{Identity: host + "_" + orDefault(o.podUID, string(uuid.NewUUID()))})
}
