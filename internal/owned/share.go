package owned

import (
	"slices"
	"sync"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// SlimDeployment is [Slim] for Deployments, which there may be very many of, and which are the largest of what is kept. They differ in
// their names, labels and counts, and hardly in anything else: what is the same is kept once.
func SlimDeployment(groups ...string) toolscache.TransformFunc {
	slim := Slim[appsv1.Deployment](groups...)
	shared := &specs{byContainer: map[string]*appsv1.DeploymentSpec{}}
	return func(in any) (any, error) {
		out, err := slim(in)
		if deployment, ok := out.(*appsv1.Deployment); ok && deployment.Spec.Selector != nil {
			shareMeta(deployment)
			shared.share(deployment)
			deployment.Status.Conditions = keepTrouble(deployment.Status.Conditions)
		}
		return out, err
	}
}

// specs are the specs that Deployments share: for each name of a first container the last one that was new, so that one of Foos and
// one of Memcacheds do not take turns.
type specs struct {
	mu          sync.Mutex
	byContainer map[string]*appsv1.DeploymentSpec
}

// share has a Deployment share the spec of those before, if it is the same. What is in a cache is never changed, so nobody sees it.
func (s *specs) share(deployment *appsv1.Deployment) {
	spec := deployment.Spec
	selector, podLabels := spec.Selector, spec.Template.Labels
	if equality.Semantic.DeepEqual(selector.MatchLabels, podLabels) {
		podLabels = selector.MatchLabels
	}
	spec.Replicas, spec.Selector, spec.Template.Labels = nil, nil, nil
	name := ""
	if containers := spec.Template.Spec.Containers; len(containers) > 0 {
		name = containers[0].Name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byContainer[name]
	if known == nil || !equality.Semantic.DeepEqual(*known, spec) {
		known = &spec
		s.byContainer[name] = known
	}
	replicas := deployment.Spec.Replicas
	deployment.Spec = *known
	deployment.Spec.Replicas, deployment.Spec.Selector, deployment.Spec.Template.Labels = replicas, selector, podLabels
}

// keepTrouble leaves out the conditions that say that a Deployment is as it should be.
func keepTrouble(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	var kept []appsv1.DeploymentCondition
	for _, c := range conditions {
		isGood := c.Type != appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
		if !isGood {
			kept = append(kept, c)
		}
	}
	return kept
}

// shareMeta has a Deployment share the words that others have too, and those that it has itself in several places.
func shareMeta(deployment *appsv1.Deployment) {
	own := map[string]string{}
	once := func(text string) string {
		if _, isKnown := own[text]; !isKnown {
			own[text] = text
		}
		return own[text]
	}
	deployment.Namespace = same(deployment.Namespace)
	deployment.Name = once(deployment.Name)
	owners := slices.Clone(deployment.OwnerReferences)
	for i := range owners {
		owner := &owners[i]
		owner.APIVersion, owner.Kind = same(owner.APIVersion), same(owner.Kind)
		owner.Name, owner.UID = once(owner.Name), types.UID(once(string(owner.UID)))
		owner.Controller, owner.BlockOwnerDeletion = shareTrue(owner.Controller), shareTrue(owner.BlockOwnerDeletion)
	}
	deployment.OwnerReferences = owners
	deployment.Labels = withWords(deployment.Labels, once)
	deployment.Annotations = withWords(deployment.Annotations, once)
	if hash, isOurs := deployment.Annotations[FieldsAnnotation]; isOurs {
		deployment.Annotations[FieldsAnnotation] = same(hash)
	}
	selector := *deployment.Spec.Selector
	selector.MatchLabels = withWords(selector.MatchLabels, once)
	deployment.Spec.Selector = &selector
}

// isTrue is what flags that are true point to. What is in a cache is never changed.
var isTrue = true

func shareTrue(flag *bool) *bool {
	if flag != nil && *flag {
		return &isTrue
	}
	return flag
}

// same returns a text that is kept once, in whatever object it is.
func same(text string) string {
	return unique.Make(text).Value()
}

// withWords returns a copy of a map, with keys that are the same in all objects and values that are the same in one.
func withWords(m map[string]string, once func(string) string) map[string]string {
	if m == nil {
		return nil
	}
	shared := make(map[string]string, len(m))
	for key, value := range m {
		shared[same(key)] = once(value)
	}
	return shared
}
