package slim

import (
	"encoding/binary"
	"hash/maphash"
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

// templates are the specs that Deployments share, by a hash: each template has an entry of its own, so templates of
// single resources do not displace one that many share.
type templates struct {
	mu     sync.Mutex
	seed   maphash.Seed
	byHash *lru.Cache
}

// share lets a Deployment share the spec of an earlier one that is the same except for the count and labels. This is
// safe because objects in a cache are never changed.
func (t *templates) share(deployment *appsv1.Deployment) {
	own := deployment.Spec
	common := own
	common.Replicas, common.Selector, common.Template.Labels = nil, nil, nil
	common.Template.Spec.TopologySpreadConstraints = nil // they select the pods of this Deployment
	deployment.Spec = *t.find(&common)
	deployment.Spec.Replicas, deployment.Spec.Selector, deployment.Spec.Template.Labels = own.Replicas, own.Selector,
		own.Template.Labels
	if equality.Semantic.DeepEqual(own.Selector.MatchLabels, own.Template.Labels) {
		deployment.Spec.Template.Labels = own.Selector.MatchLabels
	}
	deployment.Spec.Template.Spec.TopologySpreadConstraints = shareConstraints(own.Template.Spec.TopologySpreadConstraints,
		own.Selector)
}

// find returns the shared spec that equals the given one.
func (t *templates) find(spec *appsv1.DeploymentSpec) *appsv1.DeploymentSpec {
	hash := t.hash(spec)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.byHash.Get(hash); ok && equality.Semantic.DeepEqual(known, spec) {
		return known.(*appsv1.DeploymentSpec)
	}
	t.byHash.Add(hash, spec)
	return spec
}

// hash returns a hash of the fields in which templates usually differ. The caller compares specs with the same hash.
func (t *templates) hash(spec *appsv1.DeploymentSpec) uint64 {
	var hash maphash.Hash
	hash.SetSeed(t.seed)
	write := func(texts ...string) {
		for _, text := range texts {
			hash.WriteString(text) // never fails
			hash.WriteByte(0)
		}
	}
	pod := &spec.Template.Spec
	for i := range pod.Containers {
		container := &pod.Containers[i]
		write(container.Name, container.Image)
		write(container.Command...)
		write(container.Args...)
		for _, variable := range container.Env {
			write(variable.Name, variable.Value)
		}
		for _, list := range []corev1.ResourceList{container.Resources.Limits, container.Resources.Requests} {
			amounts := []int64{list.Memory().Value(), list.Cpu().MilliValue()}
			_ = binary.Write(&hash, binary.LittleEndian, amounts) // never fails
		}
	}
	write(pod.SchedulerName, pod.ServiceAccountName, pod.PriorityClassName)
	return hash.Sum64()
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
