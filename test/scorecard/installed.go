package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/bundle"
)

// imagesAreThoseOfTheBundle shows that the operator's pods run the image that the bundle names: a registry or a setting
// of the cluster could have replaced it, or another version could be installed.
func imagesAreThoseOfTheBundle(ctx context.Context, s settings) ([]finding, error) {
	current, k8s, err := s.open()
	if err != nil {
		return nil, err
	}
	deployment := current.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	want := deployment.Spec.Template.Spec.Containers[0].Image
	var installed appsv1.Deployment
	err = k8s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: deployment.Name}, &installed)
	if apierrors.IsNotFound(err) {
		suggestion := fmt.Sprintf("there is no Deployment %s in %s: run this test in the namespace of the operator",
			deployment.Name, s.namespace)
		return []finding{{suggestions: []string{suggestion}}}, nil
	}
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(installed.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	err = k8s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	f := finding{log: fmt.Sprintf("%d pods, of the image %s\n", len(pods.Items), want)}
	var wrong []error
	if len(pods.Items) == 0 {
		wrong = append(wrong, failed("Deployment %s has no pods; look at its conditions", deployment.Name))
	}
	for _, pod := range pods.Items {
		if got := pod.Spec.Containers[0].Image; got != want {
			wrong = append(wrong, failed("pod %s has to run the image %s of the bundle, and runs %s; look at which version is "+
				"installed", pod.Name, want, got))
		}
	}
	f.err = errors.Join(wrong...)
	return []finding{f}, nil
}

// metricsNeedAToken shows that a client without a token cannot read the metrics.
func metricsNeedAToken(ctx context.Context, s settings) ([]finding, error) {
	current, err := bundle.Read(s.bundle)
	if err != nil {
		return nil, err
	}
	url := s.metrics
	if url == "" {
		i := slices.IndexFunc(current.Objects, func(o unstructured.Unstructured) bool { return o.GetKind() == "Service" })
		if i < 0 {
			return nil, errors.New("the bundle has no Service for metrics")
		}
		url = fmt.Sprintf("https://%s.%s.svc:8443/metrics", current.Objects[i].GetName(), s.namespace)
	}
	// The certificate is self-signed, and its content does not matter here.
	anonymous := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing is sent
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	f := finding{log: "GET " + url + " without a token\n"}
	response, err := anonymous.Do(request)
	if err != nil {
		f.err = failed("%s has to answer, and does not: %w; run this test in the namespace of the operator", url, err)
		return []finding{f}, nil
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		f.err = failed("%s has to reject a client without a token with 401, and answers %s; look at the flags of the manager",
			url, response.Status)
	}
	return []finding{f}, nil
}
