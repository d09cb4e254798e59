package bundle

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	tutorialv1 "github.com/example/memcached-operator/api/batch/v1"
)

// What catalogs and consoles show, with the reason for each value.
func TestMetadata(t *testing.T) {
	g := NewWithT(t)
	csv := readBundle(t, "bundle").CSV
	version := find(t, "Makefile", `(?m)^VERSION \?= (.*)$`)[0]
	created := find(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml", `createdAt: "(.*)"`)[0]
	g.Expect(csv.Name).To(Equal("memcached-operator.v" + version))
	g.Expect(csv.Spec.Version.String()).To(Equal(version))
	isPinned := strconv.FormatBool(len(digests(t)) > 0)
	for annotation, want := range map[string]string{
		// Upgrades are tested. It is not Full Lifecycle: a cache has nothing to back up.
		"capabilities": "Seamless Upgrades",
		"categories":   "Database,Developer Tools",
		"repository":   "https://github.com/example/memcached-operator",
		"support":      "The memcached-operator authors, https://github.com/example/memcached-operator/issues",
		"createdAt":    created,
		"operatorframework.io/suggested-namespace":         "memcached-operator-system",
		"features.operators.openshift.io/disconnected":     isPinned, // every image, in a release
		"features.operators.openshift.io/fips-compliant":   "false",  // not certified
		"features.operators.openshift.io/proxy-aware":      "true",   // only the API server is contacted
		"features.operators.openshift.io/tls-profiles":     "false",  // metrics are served with Go's defaults
		"features.operators.openshift.io/token-auth-aws":   "false",  // no cloud is contacted
		"features.operators.openshift.io/token-auth-azure": "false",
		"features.operators.openshift.io/token-auth-gcp":   "false",
		"features.operators.openshift.io/cnf":              "false", // none of these is provided
		"features.operators.openshift.io/cni":              "false",
		"features.operators.openshift.io/csi":              "false",
	} {
		g.Expect(csv.Annotations).To(HaveKeyWithValue(annotation, want))
	}
	g.Expect(tagged(t, csv.Annotations["containerImage"])).To(Equal("ghcr.io/example/memcached-operator:v" + version))
	_, err := time.Parse(time.RFC3339, created)
	g.Expect(err).NotTo(HaveOccurred())
	// Tiles of the console show 135 characters.
	g.Expect(len(csv.Annotations["description"])).To(And(BeNumerically(">=", 10), BeNumerically("<=", 135)))
	// The namespace that the console creates enforces what the manager's pods comply with.
	var namespace corev1.Namespace
	g.Expect(json.Unmarshal([]byte(csv.Annotations["operatorframework.io/suggested-namespace-template"]), &namespace)).
		To(Succeed())
	g.Expect(namespace.Name).To(Equal("memcached-operator-system"))
	g.Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
	// It is a beta: it can be used, and its kinds are v1alpha1.
	const source = "https://github.com/example/memcached-operator"
	g.Expect(csv.Spec).To(And(HaveField("DisplayName", "Memcached Operator"), HaveField("Maturity", "beta"),
		HaveField("Keywords", ConsistOf("memcached", "cache", "key-value", "nginx", "sample-controller")),
		HaveField("Provider.URL", source), HaveField("Maintainers", ConsistOf(HaveField("Email", Not(BeEmpty())))),
		HaveField("Links", ConsistOf(HaveField("URL", source), HaveField("URL", source+"/issues"),
			HaveField("URL", "https://memcached.org")))))
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		g.Expect(csv.Spec.Description).To(ContainSubstring(owned.Kind))
	}
	for _, variable := range find(t, "cmd/options.go", `getenv\("(RELATED_IMAGE_\w+)"\)`) {
		g.Expect(csv.Spec.Description).To(ContainSubstring(variable))
	}
	// OpenShift 4.17 is Kubernetes 1.30.
	g.Expect(csv.Spec.MinKubeVersion).To(Equal("1.30.0"))
	find(t, "bundle/metadata/annotations.yaml", `(?m)^  (com.redhat.openshift.versions: v4.17)$`)
	find(t, "bundle.Dockerfile", `(?m)^LABEL (com.redhat.openshift.versions=v4.17)$`)
	g.Expect(csv.Spec.InstallModes).To(And(HaveLen(4), HaveEach(HaveField("Supported", true))))
	g.Expect(csv.Spec.Icon).To(ConsistOf(operatorsv1alpha1.Icon{MediaType: "image/svg+xml",
		Data: base64.StdEncoding.EncodeToString(readFile(t, filepath.Join(repo, "config/manifests/icon.svg")))}),
		"base64 -w0 config/manifests/icon.svg prints what belongs into config/manifests/bases")
	architectures := map[string]string{"operatorframework.io/os.linux": "supported"}
	for platform := range strings.SplitSeq(find(t, "Makefile", `(?m)^PLATFORMS \?= (.*)$`)[0], ",") {
		architectures["operatorframework.io/arch."+strings.TrimPrefix(platform, "linux/")] = "supported"
	}
	g.Expect(csv.Labels).To(Equal(architectures), "the PLATFORMS of the Makefile")
	terms := manager(t, csv).Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	scheduled := map[string]string{}
	for _, expression := range terms.NodeSelectorTerms[0].MatchExpressions {
		for _, value := range expression.Values {
			scheduled["operatorframework.io/"+strings.TrimPrefix(expression.Key, "kubernetes.io/")+"."+value] = "supported"
		}
	}
	g.Expect(scheduled).To(Equal(architectures), "the manager's pods run where its image does")
}

// deprecated matches descriptors that the console still knows, by its list of descriptors.
const deprecated = `com\.tectonic\.ui:(label|fieldGroup|arrayFieldGroup|namespaceSelector)\b`

// Every kind and field has a descriptor, so that the console shows all of them, and no descriptor is left over.
func TestOwnedKinds(t *testing.T) {
	g := NewWithT(t)
	bundle := readBundle(t, "bundle")
	var examples []map[string]any
	g.Expect(json.Unmarshal([]byte(tagged(t, bundle.CSV.Annotations["alm-examples"])), &examples)).To(Succeed())
	shown := map[string]sets.Set[string]{} // the fields of spec in the examples of a kind
	for _, sample := range rendered(t, "config/samples") {
		fields, _ := sample.Object["spec"].(map[string]any)
		shown[sample.GetKind()] = shown[sample.GetKind()].Union(sets.KeySet(fields))
		g.Expect(examples).To(ContainElement(sample.Object), "the example is that of config/samples")
	}
	var descriptions map[string]struct{ Description string }
	g.Expect(json.Unmarshal([]byte(bundle.CSV.Annotations["alm-examples-metadata"]), &descriptions)).To(Succeed())
	g.Expect(descriptions).To(HaveLen(len(examples)), "the console shows a description of each example")
	for _, example := range examples {
		name, _, _ := unstructured.NestedString(example, "metadata", "name")
		g.Expect(descriptions).To(HaveKeyWithValue(name, HaveField("Description", Not(BeEmpty()))))
	}
	described := sets.New[string]()
	for _, owned := range bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		g.Expect(bundle.CRDs).To(HaveKey(owned.Name))
		g.Expect(owned).To(And(HaveField("DisplayName", Not(BeEmpty())), HaveField("Description", Not(BeEmpty()))))
		// Without it operator-sdk takes the permissions for Events for permissions for a removed API version.
		g.Expect(owned.Resources).To(ContainElement(HaveField("Kind", "Event")), owned.Kind)
		spec, status := sets.New[string](), sets.New[string]()
		const look = "add a marker +operator-sdk:csv:customresourcedefinitions in api/"
		for _, d := range owned.SpecDescriptors {
			spec.Insert(d.Path)
			g.Expect([]any{d.DisplayName, d.Description, d.XDescriptors}).NotTo(ContainElement(BeEmpty()), d.Path)
			g.Expect(d.XDescriptors).NotTo(ContainElement(MatchRegexp(deprecated)), d.Path)
		}
		for _, d := range owned.StatusDescriptors {
			status.Insert(d.Path)
			g.Expect([]any{d.DisplayName, d.Description, d.XDescriptors}).NotTo(ContainElement(BeEmpty()), d.Path)
		}
		for _, version := range bundle.CRDs[owned.Name].Spec.Versions {
			if version.Name != owned.Version {
				continue
			}
			described.Insert(owned.Name + version.Name)
			properties := version.Schema.OpenAPIV3Schema.Properties
			g.Expect(undescribed("", properties["spec"], spec)).To(BeEmpty(), look)
			g.Expect(undescribed("", properties["status"], status)).To(BeEmpty(), look)
			// The scorecard of operator-sdk checks the fields of the examples only. The image of a Memcached depends on the
			// registries that a cluster can reach.
			wanted := sets.KeySet(properties["spec"].Properties)
			if owned.Kind == "Memcached" {
				wanted.Delete("image")
			}
			g.Expect(sets.List(shown[owned.Kind])).To(Equal(sets.List(wanted)), owned.Kind)
		}
		g.Expect(spec.Union(status)).To(BeEmpty(), "descriptors of %s without a field", owned.Kind)
	}
	served := sets.New[string]()
	for _, crd := range bundle.CRDs {
		for _, version := range crd.Spec.Versions {
			if version.Served {
				served.Insert(crd.Name + version.Name)
			}
		}
	}
	g.Expect(described).To(Equal(served))
}

// undescribed returns the fields of a schema that have no descriptor, and removes the descriptors that it finds. The
// fields below a field need descriptors if one of them has one, or if the field itself has none. A field of spec needs
// its own, which the scorecard of operator-sdk looks for.
func undescribed(path string, schema apiextensionsv1.JSONSchemaProps, descriptors sets.Set[string]) (fields []string) {
	for name, property := range schema.Properties {
		field := strings.TrimPrefix(path+"."+name, ".")
		isDescribed := descriptors.Has(field)
		descriptors.Delete(field)
		others := descriptors.Len()
		below := undescribed(field, property, descriptors)
		switch {
		case !isDescribed && (path == "" || len(property.Properties) == 0):
			fields = append(fields, field)
		case !isDescribed || descriptors.Len() < others:
			fields = append(fields, below...)
		}
	}
	return fields
}

// A volume or argument that is left over keeps the manager from starting, under OLM only.
func TestNothingDangles(t *testing.T) {
	g := NewWithT(t)
	csv := readBundle(t, "bundle").CSV
	g.Expect(Dangling(csv)).To(BeEmpty())
	flags := find(t, "cmd/options.go", `flags\.\w+\(.*?"([a-z-]+)"`)
	for _, container := range manager(t, csv).Template.Spec.Containers {
		for _, argument := range container.Args {
			name, _, _ := strings.Cut(strings.TrimLeft(argument, "-"), "=")
			g.Expect(flags).To(ContainElement(name), "the flags of the manager")
		}
	}
}

// The API server rejects another selector, so an upgrade to one fails on every cluster.
func TestSelectorsAreFrozen(t *testing.T) {
	g := NewWithT(t)
	frozen := map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"}
	for _, dir := range append(releases(t), "bundle") {
		bundle := readBundle(t, dir)
		selector := manager(t, bundle.CSV).Selector
		g.Expect(selector.MatchLabels).To(Equal(frozen), dir)
		g.Expect(selector.MatchExpressions).To(BeEmpty(), dir)
		for _, object := range bundle.Objects {
			if object.GetKind() == "Service" {
				g.Expect(as[corev1.Service](t, object).Spec.Selector).To(Equal(frozen), dir)
			}
		}
	}
}

// digests returns the images that the bundle names by digest, by those names: none between releases.
func digests(t *testing.T) map[string]string {
	t.Helper()
	images := map[string]string{}
	content, err := os.ReadFile(filepath.Join(repo, "config/manifests/digests"))
	if errors.Is(err, fs.ErrNotExist) {
		return images
	}
	for line := range strings.Lines(string(must(content, err)(t))) {
		image, digest, _ := strings.Cut(strings.TrimSpace(line), " ")
		images[image[:strings.LastIndex(image, ":")]+"@"+digest] = image
	}
	return images
}

// tagged returns a text with the tags of images in the place of their digests.
func tagged(t *testing.T, text string) string {
	t.Helper()
	for pinned, image := range digests(t) {
		text = strings.ReplaceAll(text, pinned, image)
	}
	return text
}

// A mirror copies the listed images and no others.
func TestRelatedImages(t *testing.T) {
	g := NewWithT(t)
	csv := readBundle(t, "bundle").CSV
	used := sets.New(csv.Annotations["containerImage"])
	variables := sets.New[string]()
	for _, container := range manager(t, csv).Template.Spec.Containers {
		used.Insert(container.Image)
		for _, variable := range container.Env {
			if strings.HasPrefix(variable.Name, "RELATED_IMAGE_") {
				used.Insert(variable.Value)
				variables.Insert(variable.Name)
			}
		}
	}
	listed := sets.New[string]()
	for _, image := range csv.Spec.RelatedImages {
		listed.Insert(image.Image)
		// Another image under the same name would be a change without a release.
		g.Expect(tagged(t, image.Image)).To(And(MatchRegexp(`[^/]+:[^/]+$`), Not(HaveSuffix(":latest"))))
	}
	g.Expect(listed).To(Equal(used))
	for _, sample := range rendered(t, "config/samples") {
		if sample.GetKind() == "CronJob" {
			pod := as[tutorialv1.CronJob](t, sample).Spec.JobTemplate.Spec.Template.Spec
			g.Expect(sets.List(used)).To(ContainElement(WithTransform(func(image string) string { return tagged(t, image) },
				Equal(pod.Containers[0].Image))), "what can run the operator can run the sample")
		}
	}
	for _, variable := range find(t, "cmd/options.go", `getenv\("(RELATED_IMAGE_\w+)"\)`) {
		g.Expect(variables).To(HaveKey(variable), "config/manager sets what the manager reads")
	}
}

func TestCRDsAreThoseOfConfig(t *testing.T) {
	g := NewWithT(t)
	bundle := readBundle(t, "bundle")
	paths, err := filepath.Glob(filepath.Join(repo, "config/crd/bases/*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bundle.CRDs).To(HaveLen(len(paths)))
	for _, path := range paths {
		var want apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.UnmarshalStrict(readFile(t, path), &want)).To(Succeed())
		g.Expect(bundle.CRDs).To(HaveKeyWithValue(want.Name, And(
			HaveField("Spec", BeComparableTo(want.Spec)), HaveField("Annotations", Equal(want.Annotations)))),
			"'make bundle' copies config/crd")
	}
}

// Where the kinds of objects are that config/manifests renders and that are no manifests of the bundle: operator-sdk
// leaves out those that it does not know without a message.
var elsewhere = map[string]string{
	"Namespace":          "users choose one",
	"ServiceAccount":     "OLM creates it from the ClusterServiceVersion",
	"Deployment":         "in the ClusterServiceVersion",
	"Role":               "in the ClusterServiceVersion",
	"RoleBinding":        "in the ClusterServiceVersion",
	"ClusterRoleBinding": "in the ClusterServiceVersion",
	"Configuration":      "bundle/tests/scorecard",
	"CronJob":            "an example, in an annotation",
	"Foo":                "an example, in an annotation",
	"Memcached":          "an example, in an annotation",
}

// OLM creates <crd>-<version>-{admin,edit,view} for each kind in place of these.
var replaced = regexp.MustCompile(`^ClusterRole memcached-operator-[a-z]+-(admin|editor|viewer)-role$`)

// Other kinds of manifests are rejected by old versions of OLM, by some catalogs (NetworkPolicy), or by clusters
// without their API (ServiceMonitor, PrometheusRule).
var allowed = []string{"ClusterServiceVersion", "CustomResourceDefinition", "Service", "ClusterRole"}

func TestNothingIsLost(t *testing.T) {
	g := NewWithT(t)
	bundle := readBundle(t, "bundle")
	g.Expect(bundle.CSV.Spec.WebhookDefinitions).To(BeEmpty())
	manifests, inConfig := map[string]unstructured.Unstructured{}, sets.New[string]()
	for _, object := range bundle.Objects {
		g.Expect(allowed).To(ContainElement(object.GetKind()), "kinds of manifests in a bundle")
		manifests[key(object)] = object
	}
	all := rendered(t, "config/manifests")
	bindings := map[string]string{} // the kinds of the bindings of roles
	for _, object := range all {
		inConfig.Insert(key(object))
		if strings.HasSuffix(object.GetKind(), "RoleBinding") {
			role, _, err := unstructured.NestedStringMap(object.Object, "roleRef")
			g.Expect(err).NotTo(HaveOccurred())
			bindings[role["kind"]+" "+role["name"]] = object.GetKind()
		}
	}
	for _, object := range rendered(t, "config/default") {
		key := key(object)
		// The manager works in namespaces: config/manifests binds its role there.
		if key == "ClusterRoleBinding memcached-operator-manager-rolebinding" {
			key = strings.TrimPrefix(key, "Cluster")
		}
		g.Expect(inConfig.Has(key) || replaced.MatchString(key)).To(BeTrue(), "%s is not in config/manifests", key)
	}
	unused, rules := maps.Clone(elsewhere), map[string][]rbacv1.PolicyRule{}
	for _, object := range all {
		key := key(object)
		delete(unused, object.GetKind())
		manifest, isManifest := manifests[key]
		binding, isBound := bindings[key]
		switch kind := object.GetKind(); {
		case kind == "CustomResourceDefinition", kind == "ClusterServiceVersion": // the tests above
		case isManifest:
			g.Expect(slim(manifest)).To(BeComparableTo(slim(object)), key)
		case isBound:
			rules[binding] = append(rules[binding], as[rbacv1.ClusterRole](t, object).Rules...)
		default:
			g.Expect(elsewhere).To(HaveKey(kind), "%s is not in the bundle", key)
		}
		if object.GetKind() == "Deployment" {
			want, got := as[appsv1.Deployment](t, object).Spec, manager(t, bundle.CSV)
			want.Template.Spec.Containers[0].Image = got.Template.Spec.Containers[0].Image
			manager := &got.Template.Spec.Containers[0]
			manager.Env = slices.DeleteFunc(manager.Env, func(v corev1.EnvVar) bool { return v.Name == "IMAGE_TAGS" })
			for i, variable := range manager.Env {
				manager.Env[i].Value = tagged(t, variable.Value)
			}
			g.Expect(got).To(BeComparableTo(want))
		}
	}
	g.Expect(unused).To(BeEmpty(), "no object of these kinds is rendered")
	spec := bundle.CSV.Spec.InstallStrategy.StrategySpec
	g.Expect(spec.ClusterPermissions[0].Rules).To(BeComparableTo(rules["ClusterRoleBinding"]))
	g.Expect(spec.Permissions[0].Rules).To(BeComparableTo(rules["RoleBinding"]))
}

func key(object unstructured.Unstructured) string { return object.GetKind() + " " + object.GetName() }

// slim returns an object without its namespace, which is not chosen yet, and without empty fields that operator-sdk
// writes.
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
	NewWithT(t).Expect(deployments).To(ConsistOf(HaveField("Name", "memcached-operator-controller-manager")))
	return deployments[0].Spec
}

// The namespaced resources of Kubernetes that the operator may use.
var namespaced = []string{
	"/events", "/pods", "/services", "apps/deployments", "apps/replicasets", "apps/statefulsets",
	"batch/cronjobs", "batch/jobs",
	"coordination.k8s.io/leases", "events.k8s.io/events",
	"policy/poddisruptionbudgets",
}

// OLM grants permissions in the namespaces that the operator is installed for, and clusterPermissions everywhere. The
// former grant nothing for what is not in a namespace, and the latter too much for what is in one.
func TestPermissionsAreWhereTheyBelong(t *testing.T) {
	g := NewWithT(t)
	bundle := readBundle(t, "bundle")
	inNamespaces := sets.New(namespaced...)
	for _, crd := range bundle.CRDs {
		if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
			inNamespaces.Insert(crd.Spec.Group + "/" + crd.Spec.Names.Plural)
		}
	}
	resourcesOf := func(permissions []operatorsv1alpha1.StrategyDeploymentPermissions) sets.Set[string] {
		g.Expect(permissions).To(HaveLen(1))
		resources := sets.New[string]()
		for _, rule := range permissions[0].Rules {
			resources.Insert(rule.NonResourceURLs...)
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					resource, _, _ = strings.Cut(resource, "/") // without the subresource
					resources.Insert(group + "/" + resource)
				}
			}
		}
		return resources
	}
	spec := bundle.CSV.Spec.InstallStrategy.StrategySpec
	const look = "config/manifests/kustomization.yaml binds roles, and namespaced above lists what is in a namespace"
	g.Expect(resourcesOf(spec.Permissions).Difference(inNamespaces)).To(BeEmpty(), look)
	g.Expect(resourcesOf(spec.ClusterPermissions).Intersection(inNamespaces)).To(BeEmpty(), look)
}

// OLM turns these permissions into a ClusterRole where the operator works in all namespaces: they must not allow to
// change the leases of others, which keep their leaders apart, or to change events.
func TestLeaderElectionMayDoLittle(t *testing.T) {
	for _, rule := range readBundle(t, "bundle").CSV.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules {
		mayMore := !slices.Equal(rule.Verbs, []string{"create"})
		isList := slices.Equal(rule.Verbs, []string{"list"}) // the cause of missing pods of a StatefulSet is in events only
		if slices.Contains(rule.Resources, "leases") && mayMore && len(rule.ResourceNames) == 0 ||
			slices.Equal(rule.APIGroups, []string{""}) && slices.Contains(rule.Resources, "events") && mayMore && !isList {
			t.Errorf("%v of all %v", rule.Verbs, rule.Resources)
		}
	}
}
