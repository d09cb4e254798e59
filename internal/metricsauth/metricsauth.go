// Package metricsauth serves metrics only to clients whom the roles of the cluster allow to read them. The filter of
// controller-runtime does the same with k8s.io/apiserver, which is a third of the manager's program, and of the pages
// of it that are in memory.
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
	// mostAnswers bounds the answers that are kept.
	mostAnswers = 1000
	// timeout is how long the API server may take for both answers.
	timeout = 10 * time.Second
)

// authorizer asks the API server about clients.
type authorizer struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache // HTTP codes by key
}

// key is what an answer depends on. It has the hash of a token, so that no memory dump contains tokens.
type key struct {
	token      [sha256.Size]byte
	verb, path string
}

// NewFilter returns a filter for the metrics server. A client must send a token of the cluster ("Authorization: Bearer
// TOKEN"), of a user whom a role allows the verb, such as get, for the path as a non-resource URL. Without such a token
// the answer is 401, without such a role 403, and 500 if the API server does not tell. The manager needs the permission
// to create TokenReviews and SubjectAccessReviews.
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
		answers: cache.NewLRUExpireCache(mostAnswers)}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			code, err := a.answer(request)
			switch {
			case err != nil:
				log.Error(err, "The API server does not tell whether a client may read metrics")
				http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
			case code != http.StatusOK:
				http.Error(w, http.StatusText(code), code)
			default:
				handler.ServeHTTP(w, request)
			}
		}), nil
	}, nil
}

// answer returns the HTTP code for a request: 200 if it is allowed, 401 or 403.
func (a *authorizer) answer(request *http.Request) (code int, err error) {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	by := key{sha256.Sum256([]byte(token)), strings.ToLower(request.Method), request.URL.Path}
	if known, ok := a.answers.Get(by); ok {
		return known.(int), nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), timeout)
	defer cancel()
	if code, err = a.ask(ctx, token, by); err != nil {
		return 0, err
	}
	keep := deniedFor
	if code == http.StatusOK {
		keep = allowedFor
	}
	a.answers.Add(by, code, keep)
	return code, nil
}

// ask asks the API server whose token it is, and whether that user has the permission.
func (a *authorizer) ask(ctx context.Context, token string, by key) (code int, err error) {
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
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: by.path, Verb: by.verb}},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("creating a SubjectAccessReview for %s: %w", user.Username, err)
	case access.Status.Allowed && !access.Status.Denied:
		return http.StatusOK, nil
	}
	return http.StatusForbidden, nil
}
