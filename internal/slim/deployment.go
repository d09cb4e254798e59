package slim

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/example/memcached-operator/internal/child"
)

// Deployment is [Child] for Deployments, the largest objects in the cache. There may be very many, which differ in
// names, labels, counts and little else, so they share the rest.
func Deployment(groups ...string) toolscache.TransformFunc {
	slim := Child(&appsv1.Deployment{}, groups...)
	shared := &templates{seed: maphash.MakeSeed(), byHash: lru.New(maxTemplates)}
	return func(in any) (any, error) {
		out, err := slim(in)
		if deployment, ok := out.(*appsv1.Deployment); ok && deployment.Spec.Selector != nil {
			shareMeta(deployment)
			shared.share(deployment)
			deployment.Status.Conditions = withProblems(deployment.Status.Conditions)
		}
		return out, err
	}
}

// maxTemplates is how many templates are kept for sharing: those used last. If there are more, few Deployments share
// each of them.
const maxTemplates = 1024

// templates are the specs that Deployments share, by a hash of their encoding: each template has an entry of its own,
// so templates of single resources do not displace one that many share.
type templates struct {
	mu     sync.Mutex
	seed   maphash.Seed
	byHash *lru.Cache
	buffer []byte // for encoding
}

// template is a spec that is shared.
type template struct {
	spec    *appsv1.DeploymentSpec
	encoded []byte
}

// share lets a Deployment share the spec of an earlier one that is the same except for the count and labels. This is
// safe because objects in a cache are never changed.
func (t *templates) share(deployment *appsv1.Deployment) {
	spec := &deployment.Spec
	replicas, selector, labels := spec.Replicas, spec.Selector, spec.Template.Labels
	constraints := spec.Template.Spec.TopologySpreadConstraints // they select the pods of this Deployment
	spec.Replicas, spec.Selector, spec.Template.Labels, spec.Template.Spec.TopologySpreadConstraints = nil, nil, nil, nil
	*spec = *t.find(spec)
	if maps.Equal(selector.MatchLabels, labels) {
		labels = selector.MatchLabels
	}
	spec.Replicas, spec.Selector, spec.Template.Labels = replicas, selector, labels
	spec.Template.Spec.TopologySpreadConstraints = shareConstraints(constraints, selector)
}

// find returns the shared spec that equals the given one. Encoded specs are much faster to compare than decoded ones.
func (t *templates) find(spec *appsv1.DeploymentSpec) *appsv1.DeploymentSpec {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := spec.Size()
	t.buffer = slices.Grow(t.buffer[:0], size)[:size]
	if _, err := spec.MarshalToSizedBuffer(t.buffer); err != nil {
		return spec // never: it was decoded from this encoding
	}
	hash := maphash.Bytes(t.seed, t.buffer)
	if known, ok := t.byHash.Get(hash); ok && bytes.Equal(known.(*template).encoded, t.buffer) {
		return known.(*template).spec
	}
	kept := *spec
	t.byHash.Add(hash, &template{spec: &kept, encoded: bytes.Clone(t.buffer)})
	return &kept
}

// shareConstraints returns spread constraints that share the selector of their Deployment if it is the same.
func shareConstraints(constraints []corev1.TopologySpreadConstraint,
	selector *metav1.LabelSelector) []corev1.TopologySpreadConstraint {
	shared := slices.Clone(constraints)
	for i := range shared {
		c := &shared[i]
		c.TopologyKey, c.WhenUnsatisfiable = Text(c.TopologyKey), Text(c.WhenUnsatisfiable)
		if equality.Semantic.DeepEqual(c.LabelSelector, selector) {
			c.LabelSelector = selector
		}
		c.MatchLabelKeys = slices.Clone(c.MatchLabelKeys)
		for j := range c.MatchLabelKeys {
			c.MatchLabelKeys[j] = Text(c.MatchLabelKeys[j])
		}
	}
	return shared
}

// withProblems returns the conditions that report a problem.
func withProblems(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	var kept []appsv1.DeploymentCondition
	for _, c := range conditions {
		if c.Type == appsv1.DeploymentReplicaFailure || c.Status != corev1.ConditionTrue {
			kept = append(kept, c)
		}
	}
	return kept
}

// shareMeta lets a Deployment share texts with other Deployments, and texts that it has in several places.
func shareMeta(deployment *appsv1.Deployment) {
	own := map[string]string{}
	once := func(text string) string {
		if _, isKnown := own[text]; !isKnown {
			own[text] = text
		}
		return own[text]
	}
	deployment.Namespace = Text(deployment.Namespace)
	deployment.Name = once(deployment.Name)
	owners := slices.Clone(deployment.OwnerReferences)
	for i := range owners {
		owner := &owners[i]
		owner.APIVersion, owner.Kind = Text(owner.APIVersion), Text(owner.Kind)
		owner.Name, owner.UID = once(owner.Name), types.UID(once(string(owner.UID)))
		owner.Controller, owner.BlockOwnerDeletion = shareTrue(owner.Controller), shareTrue(owner.BlockOwnerDeletion)
	}
	deployment.OwnerReferences = owners
	deployment.Labels = shareMap(deployment.Labels, once)
	deployment.Annotations = shareMap(deployment.Annotations, once)
	if hash, has := deployment.Annotations[child.FieldsAnnotation]; has {
		deployment.Annotations[child.FieldsAnnotation] = Text(hash)
	}
	selector := *deployment.Spec.Selector
	selector.MatchLabels = shareMap(selector.MatchLabels, once)
	deployment.Spec.Selector = &selector
}

// isTrue is the value that all true flags point to.
var isTrue = true

func shareTrue(flag *bool) *bool {
	if flag != nil && *flag {
		return &isTrue
	}
	return flag
}

// shareMap returns a copy of a map, with keys that are shared by all objects and values that are shared by one.
func shareMap(m map[string]string, once func(string) string) map[string]string {
	if m == nil {
		return nil
	}
	shared := make(map[string]string, len(m))
	for key, value := range m {
		shared[Text(key)] = once(value)
	}
	return shared
}
