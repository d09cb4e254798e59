// Package metricsauth authenticates and authorizes clients of the metrics endpoint with TokenReviews and
// SubjectAccessReviews. The filter of controller-runtime does the same, but imports k8s.io/apiserver, which is a third
// of the binary.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// allowedFor and deniedFor are how long an answer is used again for requests with the same token.
	allowedFor = time.Minute
	deniedFor  = 10 * time.Second
	// maxAnswers is how many answers are kept.
	maxAnswers = 1000
	// timeout is how long the API server may take for both answers.
	timeout = 10 * time.Second
)

// authorizer asks the API server about clients.
type authorizer struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache // HTTP codes by key
}

// key is a hash of what an answer depends on: the token, the verb and the path. So the cache holds no tokens, and
// clients cannot fill it with long texts.
type key [sha256.Size]byte

func keyOf(token, verb, path string) key {
	return sha256.Sum256([]byte(token + "\x00" + verb + "\x00" + path))
}

// NewFilter returns a filter for the metrics server. A client must send a token of the cluster ("Authorization: Bearer
// TOKEN"), of a user whom a role allows the verb, such as get, for the path as a non-resource URL. Without such a token
// the answer is 401, without such a role 403, and 500 if a review fails. Only GET and HEAD are allowed. The manager
// needs the permission to create TokenReviews and SubjectAccessReviews.
func NewFilter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	a := &authorizer{tokens: authentication.TokenReviews(), access: authorization.SubjectAccessReviews(),
		answers: cache.NewLRUExpireCache(maxAnswers)}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			code, err := a.answer(request)
			if err != nil && request.Context().Err() == nil { // the client is still there
				log.Error(err, "Failed to check whether a client may read metrics")
			}
			if code != http.StatusOK {
				http.Error(w, http.StatusText(code), code)
				return
			}
			request.Header.Del("Authorization")
			handler.ServeHTTP(w, request)
		}), nil
	}, nil
}

// answer returns the HTTP code for a request: 200 if it is allowed, 401, 403 or 405, and 500 with an error.
func (a *authorizer) answer(request *http.Request) (code int, err error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return http.StatusMethodNotAllowed, nil
	}
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || strings.Contains(token, " ") {
		return http.StatusUnauthorized, nil
	}
	verb, path := strings.ToLower(request.Method), request.URL.Path
	by := keyOf(token, verb, path)
	if known, ok := a.answers.Get(by); ok {
		return known.(int), nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), timeout)
	defer cancel()
	if code, err = a.review(ctx, token, verb, path); err != nil {
		return http.StatusInternalServerError, err
	}
	keep := deniedFor
	if code == http.StatusOK {
		keep = allowedFor
	}
	a.answers.Add(by, code, keep)
	return code, nil
}

// review asks the API server whose token it is, and whether that user has the permission.
func (a *authorizer) review(ctx context.Context, token, verb, path string) (code int, err error) {
	review, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("creating a TokenReview: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	access, err := a.access.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb}},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("creating a SubjectAccessReview for %s: %w", user.Username, err)
	case access.Status.Allowed && !access.Status.Denied:
		return http.StatusOK, nil
	}
	return http.StatusForbidden, nil
}
