package kinds

import (
	"cmp"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/cache/v1alpha1"
)

var certificate = map[string]any{"secretName": "web"}

// Memcached has three children of its own name. The name of the Service is in the status where it is another one.
var Memcached = Kind{
	Name:         "Memcached",
	GroupVersion: cachev1alpha1.GroupVersion,
	Resource:     "memcacheds",
	New:          func() client.Object { return &cachev1alpha1.Memcached{} },
	Make: func(namespace, name string, pods int32) client.Object {
		memcached := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Size: pods}}
		memcached.Namespace, memcached.Name = namespace, name
		return memcached
	},
	Children: []Child{
		deployment(client.Object.GetName),
		service(func(owner client.Object) string {
			return cmp.Or(owner.(*cachev1alpha1.Memcached).Status.ServiceName, owner.GetName())
		}),
		podDisruptionBudget(client.Object.GetName),
	},
	Deploys: true,
	Pods:    func(object client.Object) int32 { return object.(*cachev1alpha1.Memcached).Spec.Size },
	Resize:  func(object client.Object, pods int32) { object.(*cachev1alpha1.Memcached).Spec.Size = pods },
	Status: func(object client.Object) Status {
		s := object.(*cachev1alpha1.Memcached).Status
		return Status{s.ObservedGeneration, s.Size, s.ReadyNodes, append([]string{}, s.Nodes...), s.Selector, s.Conditions}
	},
	LongestName: 253,
	NameTaken:   cachev1alpha1.ReasonNameTaken,
	Kubernetes:  []string{"spec.podTemplate.spec.affinity", "spec.podTemplate.spec.securityContext"},
	Defaults: map[string]any{"spec.config.verbosity": int64(1), "spec.config.whenFull": "Evict",
		"spec.metrics.mode": "Disabled", "spec.tls.plaintext": "Disabled", "spec.tls.minVersion": "TLS12"},
	OwnSpecs: []string{"spec.paused", "spec.workloadType", "spec.warmupSeconds",
		"spec.podTemplate.spec.priorityClassName",
		"spec.podTemplate.spec.runtimeClassName", "spec.podTemplate.spec.serviceAccountName",
		"spec.tls.clientCertificates.caSecretName", "spec.tls.clientCertificates.caConfigMapName"},
	Needs: map[string]map[string]any{
		"spec.tls.port": certificate, "spec.tls.plaintext": certificate, "spec.tls.minVersion": certificate,
		"spec.tls.clientCertificates":                 certificate,
		"spec.tls.clientCertificates.mode":            {"caSecretName": "clients"},
		"spec.tls.clientCertificates.caSecretName":    {"mode": "Required"},
		"spec.tls.clientCertificates.caConfigMapName": {"mode": "Required"},
	},
	Values: map[string][]Value{
		"spec.config.memory": append(accepted("8Mi", "1Gi", "65536Ki"),
			rejected("4Mi", "must be whole MiB and at least 8Mi"),
			rejected("-64Mi", "must be whole MiB and at least 8Mi"),
			rejected("64.5Mi", "must be whole MiB and at least 8Mi"),
			rejected("1e3", "must be whole MiB and at least 8Mi"),
			rejected("much", "spec.config.memory")),
		"spec.config.maxItemSize": append(accepted("512Ki", "2Mi", "32Mi"),
			rejected("700k", "must be a multiple of 512Ki and at most 1Gi"),
			rejected("1025Mi", "must be a multiple of 512Ki and at most 1Gi"),
			rejected("33Mi", "must be at most half of spec.config.memory", "lower maxItemSize or set memory")),
		"spec.config.maxConnections": {{"too few for the threads", int64(95), []string{"96"}}},
		"spec.config.disabledCommands": {{"all", []any{"Flush", "Dump", "Watch"}, nil},
			{"an unknown one", []any{"Get"}, []string{`"Flush"`, `"Dump"`, `"Watch"`}},
			{"one twice", []any{"Dump", "Dump"}, []string{"Duplicate value"}}},
		"spec.config.options": {
			{"a number", map[string]any{"temporary_ttl": "61"}, nil},
			{"several", map[string]any{"hash_algorithm": "murmur3", "no_hashexpand": "", "warm_max_factor": "1.5"}, nil},
			{"an unknown one", map[string]any{"sasl": "yes"}, []string{"has a key that is not allowed"}},
			{"one that has a field", map[string]any{"idle_timeout": "9"}, []string{"use the fields of spec.config"}},
			{"two in one", map[string]any{"temporary_ttl": "1,idle_timeout=9"}, []string{"has a wrong value"}},
			{"a word for a number", map[string]any{"hashpower": "high"}, []string{"has a wrong value"}},
			{"a value for none", map[string]any{"no_hashexpand": "true"}, []string{"has a wrong value"}},
		},
		"spec.containerPort": {{"the metrics port", int64(9150), []string{"must not be 9150 or 11210"}},
			{"the administration port", int64(11210), []string{"use another port"}}},
		"spec.tls.port": {{"the metrics port", int64(9150), []string{"must not be 9150 or 11210"}},
			{"the administration port", int64(11210), []string{"use another port"}}},
		"spec.imagePullSecrets": {{"one", []any{map[string]any{"name": "registry"}}, nil}},
		"spec.resources.limits": {{"of CPU time", map[string]any{"cpu": "2"}, nil},
			{"of memory", map[string]any{"memory": "1Gi"}, nil},
			{"less than any memory for items", map[string]any{"memory": "7Mi"},
				[]string{"memory must be at least 8Mi", "raise the limit"}}},
		"spec.resources.requests": {{"of CPU time", map[string]any{"cpu": "100m"}, nil}},
		"spec.workloadType":       {{"another one in place of it", "DaemonSet", []string{`"Deployment"`, `"StatefulSet"`}}},
		"spec.podTemplate.metadata.labels": {{"another one", map[string]any{"team": "web"}, nil},
			{"one of the operator", map[string]any{"memcached_cr": "two"}, []string{"which select the pods"}}},
		"spec.podTemplate.metadata.annotations": {{"one", map[string]any{"example.com/note": "yes"}, nil}},
		"spec.podTemplate.spec.nodeSelector":    {{"one label", map[string]any{"disk": "none"}, nil}},
		"spec.podTemplate.spec.tolerations":     {{"one", []any{map[string]any{"operator": "Exists"}}, nil}},
		"spec.podTemplate.spec.affinity": {{"to pods", map[string]any{"podAffinity": map[string]any{
			"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": int64(1),
				"podAffinityTerm": map[string]any{"topologyKey": "kubernetes.io/hostname"}}}}}, nil}},
		"spec.podTemplate.spec.topologySpreadConstraints": {{"one", []any{map[string]any{"maxSkew": int64(1),
			"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}}, nil}},
		"spec.podTemplate.spec.securityContext": {{"another user", map[string]any{"runAsUser": int64(1000)}, nil},
			{"root", map[string]any{"runAsUser": int64(0)}, []string{"runAsUser must be 1 or more"}},
			{"perhaps root", map[string]any{"runAsNonRoot": false}, []string{"runAsNonRoot must be true"}},
			{"no seccomp", map[string]any{"seccompProfile": map[string]any{"type": "Unconfined"}},
				[]string{"must be RuntimeDefault or Localhost"}},
			{"no AppArmor", map[string]any{"appArmorProfile": map[string]any{"type": "Unconfined"}},
				[]string{"must be RuntimeDefault or Localhost"}},
			{"an SELinux user", map[string]any{"seLinuxOptions": map[string]any{"user": "sysadm_u"}},
				[]string{"must not have a user or role"}},
			{"Windows", map[string]any{"windowsOptions": map[string]any{"hostProcess": true}}, []string{"must not be set"}},
			{"sysctls", map[string]any{"sysctls": []any{map[string]any{"name": "kernel.shm_rmid_forced", "value": "1"}}},
				[]string{"must not be set"}}},
		"spec.service.metadata.labels": {{"another one", map[string]any{"team": "web"}, nil},
			{"one of the operator", map[string]any{"app": "web"}, []string{"which the operator sets"}}},
		"spec.service.metadata.annotations": {{"one", map[string]any{"example.com/note": "yes"}, nil},
			{"one of the operator", map[string]any{"memcached-operator.example.com/owner-uid": "1"},
				[]string{"which the operator sets"}}},
	},
}

// MemcachedSet is a Memcached with a StatefulSet, which has a second Service.
var MemcachedSet = memcachedSet()

func memcachedSet() Kind {
	k := Memcached
	k.Variant, k.LongestName = "StatefulSet", 52
	make := k.Make
	k.Make = func(namespace, name string, pods int32) client.Object {
		memcached := make(namespace, name, pods).(*cachev1alpha1.Memcached)
		memcached.Spec.WorkloadType = cachev1alpha1.StatefulSetWorkload
		return memcached
	}
	k.Children = slices.Concat([]Child{statefulSet(client.Object.GetName)}, k.Children[1:],
		[]Child{service(func(owner client.Object) string { return owner.GetName() + "-nodes" })})
	return k
}
