package schema

import (
	"maps"
	"strings"
)

// What a schema leaves open is said here: words that Kubernetes takes where the schema only has strings, and fields that it asks for beside
// others. Where that does not suffice, Kubernetes refuses the Job, and that it is told so is what is tried.

type (
	object = map[string]any
	list   = []any
)

// words are two legal values each, by what the path of a field ends in: the longest counts.
var words = map[string][2]any{
	"rules[].action": {"Ignore", "Count"}, "onExitCodes.operator": {"In", "NotIn"}, "onPodConditions[].status": {"True", "False"},
	"completionMode": {"NonIndexed", "Indexed"}, "managedBy": {nobody, "example.com/somebody"}, "podReplacementPolicy": {"Failed", "TerminatingOrFailed"},
	"succeededIndexes": {"0", "0-1"}, "matchExpressions[].operator": {"In", "NotIn"}, "matchFields[].operator": {"In", "NotIn"},
	"matchFields[].key": {"metadata.name", "metadata.name"}, "scheme": {"HTTP", "HTTPS"}, "containers[].image": {"a", "b"},
	"fieldRef.apiVersion": {"v1", "v1"}, "fieldRef.fieldPath": {"metadata.name", "metadata.namespace"},
	"resourceFieldRef.resource": {"limits.cpu", "requests.cpu"}, "imagePullPolicy": {"Always", "Never"}, "ports[].protocol": {"TCP", "UDP"},
	"resizePolicy[].resourceName": {"cpu", "memory"}, "resizePolicy[].restartPolicy": {"NotRequired", "RestartContainer"},
	"limits": {object{"cpu": "2"}, object{"cpu": "3"}}, "requests": {object{"cpu": "1"}, object{"cpu": "1500m"}},
	"volumeClaimTemplate.spec.resources.requests": {object{"storage": "1"}, object{"storage": "2"}},
	"volumeClaimTemplate.spec.resources.limits":   {object{"storage": "8"}, object{"storage": "9"}},
	"restartPolicyRules[].action":                 {"Restart", "RestartAllContainers"}, "restartPolicyRules[].exitCodes.operator": {"In", "NotIn"},
	"template.spec.restartPolicy": {"Never", "OnFailure"}, "containers[].restartPolicy": {"Never", "OnFailure"},
	"initContainers[].restartPolicy": {"Always", "Never"}, "appArmorProfile.type": {"RuntimeDefault", "Unconfined"},
	"procMount": {"Default", "Unmasked"}, "seccompProfile.type": {"RuntimeDefault", "Unconfined"},
	"terminationMessagePolicy": {"File", "FallbackToLogsOnError"}, "nameservers": {list{"10.0.0.1"}, list{"10.0.0.2"}},
	"dnsPolicy": {"Default", "ClusterFirst"}, "hostAliases[].ip": {"10.0.0.1", "10.0.0.2"}, "os.name": {"linux", "windows"},
	"overhead": {object{"cpu": "1"}, object{"cpu": "2"}}, "preemptionPolicy": {"PreemptLowerPriority", "Never"},
	"fsGroupChangePolicy": {"Always", "OnRootMismatch"}, "seLinuxChangePolicy": {"Recursive", "MountOption"},
	"supplementalGroupsPolicy": {"Merge", "Strict"}, "tolerations[].operator": {"Exists", "Equal"}, "tolerations[].effect": {"NoExecute", "NoSchedule"},
	"whenUnsatisfiable": {"ScheduleAnyway", "DoNotSchedule"}, "nodeAffinityPolicy": {"Honor", "Ignore"}, "nodeTaintsPolicy": {"Honor", "Ignore"},
	"cachingMode": {"None", "ReadOnly"}, "azureDisk.kind": {"Managed", "Dedicated"}, "diskURI": {"https://a.blob.core.windows.net/b/c.vhd", "https://a.blob.core.windows.net/b/d.vhd"},
	"hostPath.type": {"Directory", "File"}, "pullPolicy": {"Always", "Never"}, "resourceFieldRef.divisor": {"1", "1m"}, "initiatorName": {"iqn.2001-04.com.example:a", "iqn.2001-04.com.example:b"},
	"iqn":      {"iqn.2001-04.com.example:a", "iqn.2001-04.com.example:b"},
	"nfs.path": {"/a", "/b"}, "registry": {"a:1", "b:1"}, "expirationSeconds": {int64(600), int64(601)}, "maxExpirationSeconds": {int64(3600), int64(3601)},
	"accessModes": {list{"ReadWriteOnce"}, list{"ReadOnlyMany"}}, "volumeMode": {"Filesystem", "Block"}, "mountPropagation": {"None", "HostToContainer"},
	"userAnnotations": {object{"example.com/a": "1"}, object{"example.com/a": "2"}}, "recursiveReadOnly": {"Disabled", "IfPossible"}, "keyType": {"RSA3072", "ED25519"}, "signerName": {"example.com/a", "example.com/b"},
	"metadata.finalizers": {list{"example.com/a"}, list{"example.com/b"}}, "stopSignal": {"SIGTERM", "SIGKILL"}, "storageMode": {"ThickProvisioned", "ThinProvisioned"},
	"activeDeadlineSeconds": {int64(600), int64(601)}, "emptyDir.medium": {"Memory", "HugePages"}, "azureFile.secretName": {"a", "b"},
	"localhostProfile": {"a", "b"}, "subPathExpr": {"a", "$(A)"}, "dataSource.kind": {"PersistentVolumeClaim", "Other"}, "priority": {int64(0), int64(1)},
	"runAsUserName": {"a", "b"}, "hostIP": {"10.0.0.1", "10.0.0.2"}, "claims[].request": {"a", "b"},
	"supplementalGroups": {list{int64(1)}, list{int64(2)}}, "successThreshold": {int64(1), int64(2)}, "sysctls[].name": {"kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies"},
}

// beside are fields that an object has to have besides those its schema requires, by what its path ends in.
type beside struct {
	path string
	// isDirect tells that they are wanted only for fields of the object itself, and not for those of what is inside.
	isDirect bool
	fields   object
}

var (
	lookUp   = object{"exec": object{"command": list{"a"}}}
	selector = object{"labelSelector": object{"matchLabels": object{"a": "1"}}}
)

var besides = []beside{
	{"podFailurePolicy.rules[]", true, object{"onPodConditions": list{object{"type": "a", "status": "True"}}}},
	{"matchExpressions[]", false, object{"values": list{"a"}}}, {"matchFields[]", false, object{"values": list{"a"}}},
	{"livenessProbe", true, lookUp}, {"readinessProbe", true, lookUp}, {"startupProbe", true, lookUp},
	{"envFrom[]", true, object{"configMapRef": object{"name": "a"}}}, {"configMapRef", false, object{"name": "a"}}, {"secretRef", false, object{"name": "a"}},
	{"configMapKeyRef", false, object{"name": "a"}}, {"secretKeyRef", false, object{"name": "a"}}, {"nodePublishSecretRef", false, object{"name": "a"}},
	{"containers[]", true, object{"image": objectName}}, {"initContainers[]", false, object{"image": objectName}},
	{"dnsConfig.options[]", false, object{"name": "a"}}, {"tolerations[]", false, object{"operator": "Exists", "key": "a", "effect": "NoExecute"}},
	{"downwardAPI.items[]", true, object{"fieldRef": object{"fieldPath": "metadata.name"}}}, {"resourceFieldRef", false, object{"containerName": objectName}},
	{"volumeClaimTemplate.spec", false, object{"accessModes": list{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1"}}}},
	{"volumeClaimTemplate", false, object{"spec": object{"accessModes": list{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1"}}}}},
	{"scaleIO", false, object{"volumeName": "a"}}, {"storageos", false, object{"volumeName": "a"}},
	{"configMap", false, object{"name": "a"}}, {"volumes[].secret", false, object{"secretName": "a"}}, {"sources[].secret", false, object{"name": "a"}},
	{"seccompProfile", true, object{"type": "Localhost"}}, {"appArmorProfile", true, object{"type": "Localhost"}},
	{"podCertificate", false, object{"credentialBundlePath": "a", "keyType": "ED25519"}},
	{"resources", true, object{"limits": object{"cpu": "2"}}},
	{"podAffinityTerm", true, selector}, {"podAffinity.requiredDuringSchedulingIgnoredDuringExecution[]", true, selector},
	{"podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[]", true, selector}, {"topologySpreadConstraints[]", true, selector},
	{"dataSource", false, object{"apiGroup": "example.com"}},
	{"dataSourceRef", false, object{"apiGroup": "example.com"}},
	{"restartPolicyRules[]", false, object{"exitCodes": object{"operator": "In", "values": list{int64(1)}}}},
}

// companion is what Kubernetes asks for in another place.
type companion struct {
	leaves string // those whose path has this
	path   string // below spec.jobTemplate
	value  any
}

var companions = []companion{
	{"backoffLimitPerIndex", ".spec.completionMode", "Indexed"}, {"backoffLimitPerIndex", ".spec.completions", int64(3)},
	{"maxFailedIndexes", ".spec.completionMode", "Indexed"}, {"maxFailedIndexes", ".spec.completions", int64(3)}, {"maxFailedIndexes", ".spec.backoffLimitPerIndex", int64(1)},
	{"successPolicy", ".spec.completionMode", "Indexed"}, {"successPolicy", ".spec.completions", int64(3)}, {".completionMode", ".spec.completions", int64(3)},
	{"volumeMounts[]", ".spec.template.spec.volumes", list{object{"name": "a"}, object{"name": "b"}}},
	{"fileKeyRef", ".spec.template.spec.volumes", list{object{"name": "a"}, object{"name": "b"}}},
	{"ontainers[].resources.claims[]", ".spec.template.spec.resourceClaims", list{object{"name": "a", "resourceClaimName": "a"}, object{"name": "b", "resourceClaimName": "b"}}},
	{"volumeDevices[]", ".spec.template.spec.volumes", list{
		object{"name": "a", "persistentVolumeClaim": object{"claimName": "a"}}, object{"name": "b", "persistentVolumeClaim": object{"claimName": "b"}}}},
	{".containers[].restartPolicyRules[]", ".spec.template.spec.containers[].restartPolicy", "Never"},
	{"initContainers[].restartPolicyRules[]", ".spec.template.spec.initContainers[].restartPolicy", "Never"},
	{"initContainers[].lifecycle", ".spec.template.spec.initContainers[].restartPolicy", "Always"},
	{"initContainers[].livenessProbe", ".spec.template.spec.initContainers[].restartPolicy", "Always"},
	{"initContainers[].readinessProbe", ".spec.template.spec.initContainers[].restartPolicy", "Always"},
	{"initContainers[].startupProbe", ".spec.template.spec.initContainers[].restartPolicy", "Always"},
	{"initContainers[].resizePolicy[]", ".spec.template.spec.initContainers[].restartPolicy", "Always"},
	{"resizePolicy[]", ".spec.template.spec.restartPolicy", "OnFailure"},
	{".containers[].volumeMounts[].recursiveReadOnly", ".spec.template.spec.containers[].volumeMounts[].readOnly", true},
	{"initContainers[].volumeMounts[].recursiveReadOnly", ".spec.template.spec.initContainers[].volumeMounts[].readOnly", true},
	{"procMount", ".spec.template.spec.hostUsers", false}, {"hostProcess", ".spec.template.spec.hostNetwork", true},
	{"initContainers[].securityContext.windowsOptions.hostProcess", ".spec.template.spec.containers[].securityContext.windowsOptions.hostProcess", true},
	{"onExitCodes.containerName", ".spec.template.spec.containers", list{object{"name": "a", "image": "a"}, object{"name": "b", "image": "b"}}},
	{"tolerations[].value", ".spec.template.spec.tolerations[].operator", "Equal"},
	{"minDomains", ".spec.template.spec.topologySpreadConstraints[].whenUnsatisfiable", "DoNotSchedule"},
	{"resourceClaims[].name", ".spec.template.spec.resourceClaims[].resourceClaimName", "a"},
	{"iscsi.chapAuth", ".spec.template.spec.volumes[].iscsi.secretRef.name", "a"},
	{"clusterTrustBundle.path", ".spec.template.spec.volumes[].projected.sources[].clusterTrustBundle.name", "a"},
	{"clusterTrustBundle.optional", ".spec.template.spec.volumes[].projected.sources[].clusterTrustBundle.name", "a"},
	{"clusterTrustBundle.user", ".spec.template.spec.volumes[].projected.sources[].clusterTrustBundle.name", "a"},
	{"clusterTrustBundle.labelSelector", ".spec.template.spec.volumes[].projected.sources[].clusterTrustBundle.signerName", "example.com/a"},
	{"fc.lun", ".spec.template.spec.volumes[].fc.targetWWNs", list{"a"}}, {"fc.targetWWNs", ".spec.template.spec.volumes[].fc.lun", int64(1)},
	{"fc.fsType", ".spec.template.spec.volumes[].fc.wwids", list{"a"}}, {"fc.readOnly", ".spec.template.spec.volumes[].fc.wwids", list{"a"}},
}

// accompany sets in a spec what has to be in other places than a leaf.
func (k *Kind) accompany(spec object, leaf Leaf) {
	for _, c := range companions {
		if strings.Contains(leaf.Path, c.leaves) {
			k.put(spec, Leaf{Path: templatePath + c.path}, cloneValue(c.value))
		}
	}
}

// required returns an object at a path with all that its schema and Kubernetes require, and nothing else, on the way to a leaf.
func required(path string, schema *props, leaf string) object {
	made := object{}
	for _, name := range schema.Required {
		field := schema.Properties[name]
		made[name] = sample(path+"."+name, &field, leaf)
	}
	parent := leaf[:max(0, strings.LastIndexByte(leaf, '.'))]
	for _, b := range besides {
		if endsIn(path, b.path) && (!b.isDirect || parent == path) {
			maps.Copy(made, clone(b.fields))
		}
	}
	return made
}

// sample returns some legal value for a field, which may be on the way to a leaf.
func sample(path string, schema *props, leaf string) any {
	isOnTheWay := strings.HasPrefix(leaf, path+".") || strings.HasPrefix(leaf, path+"[].")
	switch {
	case len(schema.Properties) > 0 && isOnTheWay:
		return required(path, schema, leaf)
	case len(schema.Properties) > 0:
		return required(path, schema, path+".")
	case schema.Type == "array" && len(schema.Items.Schema.Properties) > 0 && isOnTheWay:
		return list{required(path+"[]", schema.Items.Schema, leaf)}
	case schema.Type == "array" && len(schema.Items.Schema.Properties) > 0:
		return list{required(path+"[]", schema.Items.Schema, path+"[].")}
	}
	return twoOf(path, schema)[0]
}

// twoOf returns two legal values of a field.
func twoOf(path string, schema *props) [2]any {
	longest := ""
	for ending := range words {
		if len(ending) > len(longest) && endsIn(path, ending) {
			longest = ending
		}
	}
	if longest != "" {
		return [2]any{cloneValue(words[longest][0]), cloneValue(words[longest][1])}
	}
	switch {
	case len(schema.Enum) >= 2:
		return [2]any{unquote(schema.Enum[0].Raw), unquote(schema.Enum[1].Raw)}
	case schema.XIntOrString:
		return [2]any{int64(1), int64(2)}
	}
	switch schema.Type {
	case "integer":
		return [2]any{int64(1), int64(2)}
	case "boolean":
		return [2]any{true, false}
	case "array":
		if schema.Items.Schema.Type == "integer" {
			return [2]any{list{int64(1)}, list{int64(2)}}
		}
		return [2]any{list{"a"}, list{"b"}}
	case "object":
		return [2]any{object{"a": "1"}, object{"a": "2", "b": "1"}}
	}
	return [2]any{"a", "b"}
}

// endsIn tells whether a path ends in whole names.
func endsIn(path, ending string) bool {
	rest, ok := strings.CutSuffix(path, ending)
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}
