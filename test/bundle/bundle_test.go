package bundle

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What the catalogs and the console show and ask for, and why it is what it is.
func TestMetadata(t *testing.T) {
	csv := readBundle(t, "bundle").CSV
	version := find(t, "Makefile", `(?m)^VERSION \?= (.*)$`)[0]
	if csv.Name != "memcached-operator.v"+version || csv.Spec.Version.String() != version {
		t.Errorf("%s is version %s; the Makefile says %s", csv.Name, csv.Spec.Version, version)
	}
	for annotation, want := range map[string]string{
		// It upgrades what it runs, and an upgrade is tested. It is no Full Lifecycle: a cache has nothing to back up.
		"capabilities":   "Seamless Upgrades",
		"categories":     "Database,Developer Tools",
		"containerImage": "ghcr.io/example/memcached-operator:v" + version,
		"repository":     "https://github.com/example/memcached-operator",
		"support":        "The memcached-operator authors, https://github.com/example/memcached-operator/issues",
		"operatorframework.io/suggested-namespace": "memcached-operator-system",
		// images are named by tag, which not every mirror follows
		"features.operators.openshift.io/disconnected":   "false",
		"features.operators.openshift.io/fips-compliant": "false", // nobody has certified it
		// it asks the API server only, and heeds the variables that OLM sets
		"features.operators.openshift.io/proxy-aware":      "true",
		"features.operators.openshift.io/tls-profiles":     "false", // metrics are served with Go's defaults
		"features.operators.openshift.io/token-auth-aws":   "false", // no cloud is asked for anything
		"features.operators.openshift.io/token-auth-azure": "false",
		"features.operators.openshift.io/token-auth-gcp":   "false",
		"features.operators.openshift.io/cnf":              "false", // it has nothing to do with any of these
		"features.operators.openshift.io/cni":              "false",
		"features.operators.openshift.io/csi":              "false",
	} {
		if got := csv.Annotations[annotation]; got != want {
			t.Errorf("annotation %s: %q, want %q", annotation, got, want)
		}
	}
	// Tiles of the console cut it off after 135.
	if n := len(csv.Annotations["description"]); n < 10 || n > 135 {
		t.Errorf("the short description has %d characters", n)
	}
	base := find(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml", `createdAt: "(.*)"`)[0]
	if _, err := time.Parse(time.RFC3339, base); err != nil || csv.Annotations["createdAt"] != base {
		t.Errorf("createdAt is %s and in the base %s, %v", csv.Annotations["createdAt"], base, err)
	}
	// The namespace that the console makes enforces what the manager's pods keep anyway.
	var namespace corev1.Namespace
	if err := json.Unmarshal([]byte(csv.Annotations["operatorframework.io/suggested-namespace-template"]),
		&namespace); err != nil ||
		namespace.Name != "memcached-operator-system" ||
		namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("suggested namespace: %v, %v", namespace, err)
	}
	// Who finds it by what, whom it is from, and whom to ask. It is a beta: its kinds are v1alpha1, and it is ready to be
	// used.
	const source = "https://github.com/example/memcached-operator"
	if diff := cmp.Diff(operatorsv1alpha1.ClusterServiceVersionSpec{
		DisplayName: "Memcached Operator",
		Keywords:    []string{"memcached", "cache", "key-value", "nginx", "sample-controller"},
		Maturity:    "beta",
		Provider:    operatorsv1alpha1.AppLink{Name: "The memcached-operator authors", URL: source},
		Maintainers: []operatorsv1alpha1.Maintainer{{Name: "The memcached-operator authors",
			Email: "memcached-operator@example.com"}},
		Links: []operatorsv1alpha1.AppLink{
			{Name: "Source code and documentation", URL: source},
			{Name: "Issues", URL: source + "/issues"},
			{Name: "Memcached", URL: "https://memcached.org"},
		},
	}, operatorsv1alpha1.ClusterServiceVersionSpec{
		DisplayName: csv.Spec.DisplayName, Keywords: csv.Spec.Keywords, Maturity: csv.Spec.Maturity,
		Provider: csv.Spec.Provider, Maintainers: csv.Spec.Maintainers, Links: csv.Spec.Links,
	}); diff != "" {
		t.Errorf("what the console shows beside the description (-want +got):\n%s", diff)
	}
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		if !strings.Contains(csv.Spec.Description, owned.Kind) {
			t.Errorf("the description does not mention %s", owned.Kind)
		}
	}
	for _, variable := range find(t, "cmd/options.go", `getenv\("(RELATED_IMAGE_\w+)"\)`) {
		if !strings.Contains(csv.Spec.Description, variable) {
			t.Errorf("the description does not tell of %s", variable)
		}
	}
	// 1.30 is the oldest that is tested against; OpenShift 4.17 is 1.30, and has to be named where this is.
	if csv.Spec.MinKubeVersion != "1.30.0" {
		t.Errorf("minKubeVersion %s", csv.Spec.MinKubeVersion)
	}
	find(t, "bundle/metadata/annotations.yaml", `(?m)^  (com.redhat.openshift.versions: v4.17)$`)
	find(t, "bundle.Dockerfile", `(?m)^LABEL (com.redhat.openshift.versions=v4.17)$`)
	if len(csv.Spec.InstallModes) != 4 ||
		slices.ContainsFunc(csv.Spec.InstallModes, func(mode operatorsv1alpha1.InstallMode) bool { return !mode.Supported }) {
		t.Errorf("install modes %v: WATCH_NAMESPACE makes all of them work", csv.Spec.InstallModes)
	}
	if svg := readFile(t, filepath.Join(repo, "config/manifests/icon.svg")); len(csv.Spec.Icon) != 1 ||
		csv.Spec.Icon[0].MediaType != "image/svg+xml" || csv.Spec.Icon[0].Data != base64.StdEncoding.EncodeToString(svg) {
		t.Error("the icon is not config/manifests/icon.svg: base64 -w0 makes what has to be in config/manifests/bases")
	}
	architectures := map[string]string{"operatorframework.io/os.linux": "supported"}
	for platform := range strings.SplitSeq(find(t, "Makefile", `(?m)^PLATFORMS \?= (.*)$`)[0], ",") {
		architectures["operatorframework.io/arch."+strings.TrimPrefix(platform, "linux/")] = "supported"
	}
	if diff := cmp.Diff(architectures, csv.Labels); diff != "" {
		t.Errorf("labels, for the PLATFORMS of the Makefile (-want +got):\n%s", diff)
	}
}

// Every kind is there with its fields, so that the console can show all of it and none of what is gone.
func TestOwnedKinds(t *testing.T) {
	bundle := readBundle(t, "bundle")
	examples := map[string]map[string]any{}
	var list []map[string]any
	if err := json.Unmarshal([]byte(bundle.CSV.Annotations["alm-examples"]), &list); err != nil {
		t.Fatal(err)
	}
	for _, example := range list {
		examples[example["kind"].(string)] = example
	}
	for _, sample := range rendered(t, "config/samples") {
		if diff := cmp.Diff(sample.Object, examples[sample.GetKind()]); diff != "" {
			t.Errorf("the example of %s is not that in config/samples (-want +got):\n%s", sample.GetKind(), diff)
		}
	}
	described := 0
	for _, owned := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		crd := bundle.CRDs[owned.Name]
		if crd == nil {
			t.Errorf("%s is owned and not in the bundle", owned.Name)
			continue
		}
		// operator-sdk takes the rights to Events and PodDisruptionBudgets for rights to versions that are gone, unless
		// they are among the resources.
		if owned.DisplayName == "" || owned.Description == "" ||
			!slices.ContainsFunc(owned.Resources, func(r operatorsv1alpha1.APIResourceReference) bool {
				return r.Kind == "Event"
			}) {
			t.Errorf("%s: name, description or resources are missing", owned.Kind)
		}
		for _, version := range crd.Spec.Versions {
			if version.Name != owned.Version {
				continue
			}
			described++
			properties := version.Schema.OpenAPIV3Schema.Properties
			spec, status := map[string][]string{}, map[string][]string{}
			for _, d := range owned.SpecDescriptors {
				spec[d.Path] = complete(t, owned.Kind+".spec."+d.Path, d.DisplayName, d.Description, d.XDescriptors)
			}
			for _, d := range owned.StatusDescriptors {
				status[d.Path] = complete(t, owned.Kind+".status."+d.Path, d.DisplayName, d.Description, d.XDescriptors)
			}
			covered(t, owned.Kind+".spec", "", properties["spec"], spec)
			covered(t, owned.Kind+".status", "", properties["status"], status)
			// The scorecard looks at the fields of the example only.
			example, _, _ := unstructured.NestedMap(examples[owned.Kind], "spec")
			if got, want := slices.Sorted(maps.Keys(example)),
				slices.Sorted(maps.Keys(properties["spec"].Properties)); !slices.Equal(got, want) {
				t.Errorf("%s: the example has %v of the fields %v", owned.Kind, got, want)
			}
		}
	}
	served := 0
	for _, crd := range bundle.CRDs {
		for _, version := range crd.Spec.Versions {
			if version.Served {
				served++
			}
		}
	}
	if described != served || described != len(bundle.CSV.Spec.CustomResourceDefinitions.Owned) {
		t.Errorf("%d versions are served and %d of %d described", served, described,
			len(bundle.CSV.Spec.CustomResourceDefinitions.Owned))
	}
}

// complete checks a descriptor and returns what the console is to show it as.
func complete(t *testing.T, field, displayName, description string, x []string) []string {
	t.Helper()
	if displayName == "" || description == "" || len(x) == 0 {
		t.Errorf("%s: its descriptor lacks a name, a description or x-descriptors: see the markers in api/", field)
	}
	return x
}

// covered checks that every field has a descriptor, or else all fields below it, and that there is none without a
// field.
func covered(t *testing.T, kind, path string, schema apiextensionsv1.JSONSchemaProps, descriptors map[string][]string) {
	t.Helper()
	for name, property := range schema.Properties {
		field := strings.TrimPrefix(path+"."+name, ".")
		if _, isDescribed := descriptors[field]; isDescribed {
			delete(descriptors, field)
			continue
		}
		if len(property.Properties) == 0 {
			t.Errorf("%s.%s has no descriptor: add a marker +operator-sdk:csv:customresourcedefinitions in api/", kind, field)
		}
		covered(t, kind, field, property, descriptors)
	}
	if path == "" && len(descriptors) > 0 {
		t.Errorf("%s: descriptors of fields that do not exist: %v", kind, slices.Sorted(maps.Keys(descriptors)))
	}
}

// A volume or an argument that is left over keeps the manager from starting, under OLM only.
func TestNothingDangles(t *testing.T) {
	csv := readBundle(t, "bundle").CSV
	for _, sentence := range Dangling(csv) {
		t.Error(sentence)
	}
	flags := find(t, "cmd/options.go", `flags\.\w+\(.*?"([a-z-]+)"`)
	for _, container := range manager(t, csv).Template.Spec.Containers {
		for _, argument := range container.Args {
			name, _, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
			if !slices.Contains(flags, name) {
				t.Errorf("the manager has no flag for the argument %s", argument)
			}
		}
	}
}

// The API server refuses another selector, so an upgrade to one fails on every cluster. These are for ever.
func TestSelectorsAreFrozen(t *testing.T) {
	frozen := map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"}
	for _, dir := range append(releases(t), "bundle") {
		bundle := readBundle(t, dir)
		if selector := manager(t, bundle.CSV).Selector; cmp.Diff(frozen, selector.MatchLabels) != "" ||
			len(selector.MatchExpressions) > 0 {
			t.Errorf("%s: the Deployment selects %v", dir, selector)
		}
		for _, object := range bundle.Objects {
			if object.GetKind() == "Service" {
				if selector := as[corev1.Service](t, object).Spec.Selector; cmp.Diff(frozen, selector) != "" {
					t.Errorf("%s: the Service selects %v", dir, selector)
				}
			}
		}
	}
}

// A mirror copies what is listed and nothing else.
func TestRelatedImages(t *testing.T) {
	csv := readBundle(t, "bundle").CSV
	want := map[string]bool{csv.Annotations["containerImage"]: true}
	named := map[string]bool{}
	for _, container := range manager(t, csv).Template.Spec.Containers {
		want[container.Image] = true
		for _, variable := range container.Env {
			if strings.HasPrefix(variable.Name, "RELATED_IMAGE_") {
				want[variable.Value], named[variable.Name] = true, true
			}
		}
	}
	got := map[string]bool{}
	for _, image := range csv.Spec.RelatedImages {
		got[image.Image] = true
		// Another image under the same name would change without a release.
		if !strings.Contains(image.Image, "@sha256:") &&
			(!strings.Contains(filepath.Base(image.Image), ":") || strings.HasSuffix(image.Image, ":latest")) {
			t.Errorf("%s has no version", image.Image)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("relatedImages (-what the manager is and names, +what is listed):\n%s", diff)
	}
	for _, variable := range find(t, "cmd/options.go", `getenv\("(RELATED_IMAGE_\w+)"\)`) {
		if !named[variable] {
			t.Errorf("the manager reads %s, and config/manager does not set it", variable)
		}
	}
}

// What users install by OLM is what config/crd says.
func TestCRDsAreThoseOfConfig(t *testing.T) {
	bundle := readBundle(t, "bundle")
	paths, err := filepath.Glob(filepath.Join(repo, "config/crd/bases/*.yaml"))
	if err != nil || len(paths) != len(bundle.CRDs) {
		t.Errorf("the bundle has %d of %v, %v", len(bundle.CRDs), paths, err)
	}
	for _, path := range paths {
		var want apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(readFile(t, path), &want); err != nil {
			t.Fatal(err)
		}
		got := bundle.CRDs[want.Name]
		if got == nil {
			t.Errorf("%s is not in the bundle", want.Name)
			continue
		}
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" || cmp.Diff(want.Annotations, got.Annotations) != "" {
			t.Errorf("%s: 'make bundle' makes it what config/crd has (-want +got):\n%s%s", want.Name, diff,
				cmp.Diff(want.Annotations, got.Annotations))
		}
	}
}

// Where things go that "kustomize build config/manifests" renders and that are no manifests of the bundle. What
// operator-sdk does not know it leaves out without a word.
var elsewhere = map[string]string{
	"Namespace":          "who installs it chooses one",
	"ServiceAccount":     "OLM makes it of the ClusterServiceVersion",
	"Deployment":         "in the ClusterServiceVersion",
	"Role":               "in the ClusterServiceVersion",
	"RoleBinding":        "in the ClusterServiceVersion",
	"ClusterRoleBinding": "in the ClusterServiceVersion",
	"Configuration":      "bundle/tests/scorecard",
	"CronJob":            "an example, in an annotation",
	"Foo":                "an example, in an annotation",
	"Memcached":          "an example, in an annotation",
}

// What OLM makes its own of, for each kind that it installs: <crd>-<version>-{admin,edit,view}, which are aggregated to
// the roles of Kubernetes of these names.
var replaced = regexp.MustCompile(`^ClusterRole memcached-operator-[a-z]+-(admin|editor|viewer)-role$`)

// The kinds of manifests that a bundle may have. Others are refused by old versions of OLM, by some catalogs
// (NetworkPolicy), or by clusters without their API (ServiceMonitor, PrometheusRule).
var allowed = []string{"ClusterServiceVersion", "CustomResourceDefinition", "Service", "ClusterRole"}

func TestNothingIsLost(t *testing.T) {
	bundle := readBundle(t, "bundle")
	has := map[string]unstructured.Unstructured{}
	for _, object := range bundle.Objects {
		if !slices.Contains(allowed, object.GetKind()) {
			t.Errorf("a %s has no place in the bundle", object.GetKind())
		}
		has[object.GetKind()+" "+object.GetName()] = object
	}
	if len(bundle.CSV.Spec.WebhookDefinitions) > 0 {
		t.Error("there are webhooks")
	}
	bound := map[string]string{} // the role, and the kind of its binding
	roles := map[string][]rbacv1.PolicyRule{}
	all := rendered(t, "config/manifests")
	for _, object := range all {
		switch object.GetKind() {
		case "ClusterRoleBinding":
			bound["ClusterRole "+as[rbacv1.ClusterRoleBinding](t, object).RoleRef.Name] = object.GetKind()
		case "RoleBinding":
			ref := as[rbacv1.RoleBinding](t, object).RoleRef
			bound[ref.Kind+" "+ref.Name] = object.GetKind()
		}
	}
	// Nothing that kustomize installs goes missing on the way, but what is on the list.
	inManifests := map[string]bool{}
	for _, object := range all {
		inManifests[object.GetKind()+" "+object.GetName()] = true
	}
	for _, object := range rendered(t, "config/default") {
		key := object.GetKind() + " " + object.GetName()
		// What the manager does is in namespaces: config/manifests binds its role there.
		if key == "ClusterRoleBinding memcached-operator-manager-rolebinding" {
			key = strings.TrimPrefix(key, "Cluster")
		}
		if !inManifests[key] && !replaced.MatchString(key) {
			t.Errorf("%s is in config/default and not in config/manifests, nor on the list of what OLM replaces", key)
		}
	}
	used := map[string]bool{}
	for _, object := range all {
		key := object.GetKind() + " " + object.GetName()
		binding, isBound := bound[key]
		got, isManifest := has[key]
		// The definitions have a test of their own.
		if isManifest && object.GetKind() != "CustomResourceDefinition" && object.GetKind() != "ClusterServiceVersion" {
			if diff := cmp.Diff(slim(object), slim(got)); diff != "" {
				t.Errorf("%s (-config/manifests +bundle):\n%s", key, diff)
			}
		}
		switch {
		case isBound && object.GetKind() == "Role":
			roles[binding] = append(roles[binding], as[rbacv1.Role](t, object).Rules...)
		case isBound:
			roles[binding] = append(roles[binding], as[rbacv1.ClusterRole](t, object).Rules...)
		case isManifest, object.GetKind() == "ClusterServiceVersion":
			continue
		case elsewhere[object.GetKind()] == "":
			t.Errorf("%s is rendered and not in the bundle, nor on the list of what goes elsewhere", key)
		}
		used[object.GetKind()] = true
	}
	for kind := range elsewhere {
		if !used[kind] {
			t.Errorf("no %s is rendered: take it off the list", kind)
		}
	}
	spec := bundle.CSV.Spec.InstallStrategy.StrategySpec
	if diff := cmp.Diff(roles["ClusterRoleBinding"], spec.ClusterPermissions[0].Rules) +
		cmp.Diff(roles["RoleBinding"], spec.Permissions[0].Rules); diff != "" {
		t.Errorf("permissions (-config/rbac +bundle):\n%s", diff)
	}
	for _, object := range all {
		if object.GetKind() == "Deployment" {
			want, got := as[appsv1.Deployment](t, object).Spec, manager(t, bundle.CSV)
			want.Template.Spec.Containers[0].Image = got.Template.Spec.Containers[0].Image
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the Deployment (-config/default +bundle):\n%s", diff)
			}
		}
	}
}

// slim returns an object without its namespace, which is for who installs it to choose, and without what operator-sdk
// writes of fields that nobody has set.
func slim(object unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	unstructured.RemoveNestedField(content, "metadata", "namespace")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if status, _, _ := unstructured.NestedMap(content, "status", "loadBalancer"); len(status) == 0 {
		unstructured.RemoveNestedField(content, "status")
	}
	return content
}

// manager returns the Deployment of a bundle.
func manager(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion) appsv1.DeploymentSpec {
	t.Helper()
	deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if len(deployments) != 1 || deployments[0].Name != "memcached-operator-controller-manager" {
		t.Fatalf("%d Deployments", len(deployments))
	}
	return deployments[0].Spec
}

// What there is of the kinds that Kubernetes has in namespaces and that the operator may do something with.
var inNamespaces = []string{
	"/events", "/pods", "/services", "apps/deployments", "apps/replicasets", "batch/cronjobs", "batch/jobs",
	"coordination.k8s.io/leases", "events.k8s.io/events",
	"policy/poddisruptionbudgets",
}

// OLM gives permissions in the namespaces that the operator is installed for, and clusterPermissions everywhere. What
// is not in a namespace nobody gets by permissions there, and what is in one nobody should get everywhere.
func TestPermissionsAreWhereTheyBelong(t *testing.T) {
	bundle := readBundle(t, "bundle")
	namespaced := slices.Clone(inNamespaces)
	for _, crd := range bundle.CRDs {
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			namespaced = append(namespaced, crd.Spec.Group+"/"+crd.Spec.Names.Plural)
		}
	}
	spec := bundle.CSV.Spec.InstallStrategy.StrategySpec
	check := func(field string, permissions []operatorsv1alpha1.StrategyDeploymentPermissions, wantNamespaced bool) {
		if len(permissions) != 1 {
			t.Errorf("%s are for %d service accounts", field, len(permissions))
		}
		for _, permission := range permissions {
			for _, rule := range permission.Rules {
				if len(rule.NonResourceURLs) > 0 && wantNamespaced {
					t.Errorf("%s has the URLs %v", field, rule.NonResourceURLs)
				}
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						name, _, _ := strings.Cut(group+"/"+resource, "/status")
						name, _, _ = strings.Cut(name, "/finalizers")
						if slices.Contains(namespaced, name) != wantNamespaced {
							t.Errorf("%s has %s: config/manifests/kustomization.yaml says how roles are bound, and inNamespaces above "+
								"what is in a namespace", field, name)
						}
					}
				}
			}
		}
	}
	check("permissions", spec.Permissions, true)
	check("clusterPermissions", spec.ClusterPermissions, false)
}

// OLM makes a ClusterRole of it where the operator works in all namespaces: it must not grant what hurts there. Leases
// of others are what keeps their leaders apart.
func TestLeaderElectionMayDoLittle(t *testing.T) {
	for _, rule := range readBundle(t, "bundle").CSV.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules {
		if slices.Contains(rule.Resources, "leases") && !slices.Equal(rule.Verbs, []string{"create"}) &&
			len(rule.ResourceNames) == 0 {
			t.Errorf("%v of all leases", rule.Verbs)
		}
		if slices.Equal(rule.APIGroups, []string{""}) && slices.Contains(rule.Resources, "events") &&
			!slices.Equal(rule.Verbs, []string{"create"}) {
			t.Errorf("%v of events", rule.Verbs)
		}
	}
}
