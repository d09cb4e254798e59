package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Dangling returns what the deployments of a bundle need and OLM does not provide, one sentence for each: mounts
// without a volume, volumes without a mount, Secrets, ConfigMaps and claims, which the bundle does not ship, and
// arguments that name files outside every mount. Each keeps a pod from starting, or is left over from something that
// would. The bundle has no webhooks, so OLM mounts no certificates.
func Dangling(csv *operatorsv1alpha1.ClusterServiceVersion) (found []string) {
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := deployment.Spec.Template.Spec
		volumes, mounted := sets.New[string](), sets.New[string]()
		for _, volume := range pod.Volumes {
			volumes.Insert(volume.Name)
		}
		sentences := needs(pod)
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, mount := range container.VolumeMounts {
				mounted.Insert(mount.Name)
			}
			for _, device := range container.VolumeDevices {
				mounted.Insert(device.Name)
			}
			sentences = append(sentences, outside(container)...)
		}
		for _, volume := range sets.List(mounted.Difference(volumes)) {
			sentences = append(sentences, fmt.Sprintf("the volume %s is mounted and does not exist: remove the mount", volume))
		}
		for _, volume := range sets.List(volumes.Difference(mounted)) {
			sentences = append(sentences, fmt.Sprintf("no container mounts the volume %s: remove it", volume))
		}
		for _, sentence := range sentences {
			found = append(found, "deployment "+deployment.Name+": "+sentence)
		}
	}
	return found
}

// referencing are the fields that name an object, and its kind.
var referencing = map[string]string{
	"secret": "Secret", "secretRef": "Secret", "secretKeyRef": "Secret",
	"configMap": "ConfigMap", "configMapRef": "ConfigMap", "configMapKeyRef": "ConfigMap",
	"persistentVolumeClaim": "PersistentVolumeClaim",
}

// needs returns the objects that have to exist for a pod to start, except for kube-root-ca.crt, which every namespace
// has.
func needs(pod corev1.PodSpec) (found []string) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&pod)
	if err != nil {
		panic(err) // Kubernetes' types can all be converted
	}
	var visit func(field string, value any)
	visit = func(field string, value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				visit(field, item)
			}
		case map[string]any:
			kind := referencing[field]
			name := cmp.Or(value["name"], value["secretName"], value["claimName"])
			if kind != "" && value["optional"] != true && name != "kube-root-ca.crt" {
				found = append(found, fmt.Sprintf("it needs the %s %s, which OLM does not create: make it optional", kind, name))
			}
			for _, below := range slices.Sorted(maps.Keys(value)) {
				visit(below, value[below])
			}
		}
	}
	visit("", content)
	return found
}

// namesFile matches the flags whose value is a file or a directory.
var namesFile = regexp.MustCompile(`(cert|key|config|token|ca)-?(path|dir|file)$|-(dir|file)$`)

// outside returns the arguments of a container, --flag=value or --flag value, that name files in no mount.
func outside(container corev1.Container) (found []string) {
	mounts := make([]string, 0, 3+len(container.VolumeMounts))
	mounts = append(mounts, "/dev", "/proc", "/var/run/secrets/kubernetes.io/serviceaccount")
	for _, mount := range container.VolumeMounts {
		mounts = append(mounts, mount.MountPath)
	}
	previous := ""
	for _, argument := range slices.Concat(container.Command, container.Args) {
		flag, value, hasValue := strings.Cut(argument, "=")
		if !hasValue && !strings.HasPrefix(argument, "-") {
			flag, value = previous, argument
		}
		previous = argument
		isFile := value != "" && strings.HasPrefix(flag, "-") && (path.IsAbs(value) || namesFile.MatchString(flag))
		if isFile && !slices.ContainsFunc(mounts, func(mount string) bool {
			return strings.HasPrefix(path.Clean(value)+"/", path.Clean(mount)+"/")
		}) {
			found = append(found, fmt.Sprintf("container %s has the argument %s=%s, which is in no mount: remove it",
				container.Name, flag, value))
		}
	}
	return found
}
