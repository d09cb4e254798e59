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
)

// Dangling tells what the deployments of a bundle lean on that is not there under OLM: mounts of volumes that do not
// exist, volumes that nobody mounts, Secrets, ConfigMaps and claims that nobody creates, and arguments that name files
// outside of every mount. There is one sentence for each, with what to do. Any of them keeps a pod from starting or has
// it crash, or is left over from something that would.
//
// The bundle is taken to ship no Secret and no ConfigMap of its own; optional ones may be absent.
func Dangling(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var found []string
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := deployment.Spec.Template.Spec
		certificates := certificateMounts(csv, deployment.Name)
		for _, sentence := range slices.Concat(unmounted(pod), absent(pod), outside(pod, certificates)) {
			found = append(found, "deployment "+deployment.Name+": "+sentence)
		}
	}
	return found
}

// certificateMounts returns where OLM itself mounts certificates into a deployment that serves webhooks or an API.
func certificateMounts(csv *operatorsv1alpha1.ClusterServiceVersion, deployment string) []string {
	serves := slices.ContainsFunc(csv.Spec.WebhookDefinitions,
		func(w operatorsv1alpha1.WebhookDescription) bool { return w.DeploymentName == deployment }) ||
		slices.ContainsFunc(csv.Spec.APIServiceDefinitions.Owned,
			func(a operatorsv1alpha1.APIServiceDescription) bool { return a.DeploymentName == deployment })
	if !serves {
		return nil
	}
	return []string{"/tmp/k8s-webhook-server/serving-certs", "/apiserver.local.config/certificates"}
}

func containers(pod corev1.PodSpec) []corev1.Container {
	return slices.Concat(pod.InitContainers, pod.Containers)
}

// unmounted compares volumes with mounts.
func unmounted(pod corev1.PodSpec) []string {
	volumes, mounted := map[string]bool{}, map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	var found []string
	use := func(container, volume, where string) {
		mounted[volume] = true
		if !volumes[volume] {
			found = append(found,
				fmt.Sprintf("container %s mounts the volume %s at %s, and there is no such volume: take the mount away, or add "+
					"the volume", container, volume, where))
		}
	}
	for _, container := range containers(pod) {
		for _, mount := range container.VolumeMounts {
			use(container.Name, mount.Name, mount.MountPath)
		}
		for _, device := range container.VolumeDevices {
			use(container.Name, device.Name, device.DevicePath)
		}
	}
	for _, volume := range pod.Volumes {
		if !mounted[volume.Name] {
			found = append(found, fmt.Sprintf("no container mounts the volume %s: take it away", volume.Name))
		}
	}
	return found
}

// Kubernetes makes this ConfigMap in every namespace.
const rootCA = "kube-root-ca.crt"

// absent finds the Secrets, ConfigMaps and claims that have to exist for the pod to start.
func absent(pod corev1.PodSpec) (found []string) {
	for _, volume := range pod.Volumes {
		found = append(found, needs("the volume "+volume.Name, volume)...)
	}
	for _, container := range containers(pod) {
		environment := corev1.Container{EnvFrom: container.EnvFrom, Env: container.Env}
		found = append(found, needs("the environment of container "+container.Name, environment)...)
	}
	return found
}

// referencing are the fields that name an object, and its kind.
var referencing = map[string]string{
	"secret": "Secret", "secretRef": "Secret", "secretKeyRef": "Secret",
	"configMap": "ConfigMap", "configMapRef": "ConfigMap", "configMapKeyRef": "ConfigMap",
	"persistentVolumeClaim": "PersistentVolumeClaim",
}

// needs finds the objects that a part of a pod cannot be without.
func needs[T any](what string, part T) []string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&part)
	if err != nil {
		panic(err) // the types of Kubernetes can all be converted
	}
	var found []string
	var visit func(field string, value any)
	visit = func(field string, value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				visit(field, item)
			}
		case map[string]any:
			kind, optional := referencing[field], value["optional"] == true
			name, _ := cmp.Or(value["name"], value["secretName"], value["claimName"]).(string)
			if kind != "" && !optional && (kind != "ConfigMap" || name != rootCA) {
				found = append(found,
					fmt.Sprintf("%s needs the %s %s, and OLM creates none: take it away, or make it optional", what, kind, name))
			}
			for _, below := range slices.Sorted(maps.Keys(value)) {
				visit(below, value[below])
			}
		}
	}
	visit("", content)
	return found
}

// What every container has without a mount of its own.
var everywhere = []string{"/dev", "/proc", "/var/run/secrets/kubernetes.io/serviceaccount"}

// namesFile is what flags are called whose value is a file or a directory.
var namesFile = regexp.MustCompile(`(cert|key|config|token|ca)-?(path|dir|file)$|-(dir|file)$`)

// outside finds arguments that name files that lie in no mount.
func outside(pod corev1.PodSpec, certificates []string) []string {
	var found []string
	for _, container := range containers(pod) {
		mounts := slices.Concat(everywhere, certificates)
		for _, mount := range container.VolumeMounts {
			mounts = append(mounts, mount.MountPath)
		}
		for _, flag := range flags(container) {
			isFile := path.IsAbs(flag.value) || flag.value != "" && namesFile.MatchString(flag.name)
			if isFile && !slices.ContainsFunc(mounts, func(mount string) bool { return within(mount, flag.value) }) {
				found = append(found,
					fmt.Sprintf("container %s has the argument %s=%s, which lies in no mount: take the argument away together with "+
						"its volume", container.Name, flag.name, flag.value))
			}
		}
	}
	return found
}

type flag struct{ name, value string }

// flags returns the flags of a container that have a value, written --flag=value or --flag value.
func flags(container corev1.Container) []flag {
	var all []flag
	name := "" // of a flag whose value may come next
	for _, argument := range slices.Concat(container.Command, container.Args) {
		isFlag := strings.HasPrefix(argument, "-")
		switch {
		case isFlag && strings.Contains(argument, "="):
			before, value, _ := strings.Cut(argument, "=")
			all = append(all, flag{before, value})
			name = ""
		case isFlag:
			name = argument
		case name != "":
			all = append(all, flag{name, argument})
			name = ""
		}
	}
	return all
}

// within tells whether a path is a directory or lies in it.
func within(directory, p string) bool {
	directory, p = path.Clean(directory), path.Clean(p)
	return p == directory || strings.HasPrefix(p, strings.TrimSuffix(directory, "/")+"/")
}
