package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// Leases is the resource of leader election.
const Leases = "coordination.k8s.io/leases"

// Request is a request of the operator.
type Request struct {
	At        time.Time
	Verb      string
	Resource  string // with its group and subresource; empty for a URL that is no resource
	Namespace string // empty for all
	Name      string
	// Fault is its fault; nil for none. Rule is the number of the rule that causes it, from 1; 0 for none.
	Fault *Fault
	Rule  int
	// Status is the answer of the API server; 0 if there is none, or none yet.
	Status int
	// IsConflict is set if the API server had another version or UID than a write requires.
	IsConflict bool
	// AnsweredUID and AnsweredRV are of the object in the answer to a write.
	AnsweredUID, AnsweredRV string
	// OnlyUID and OnlyRV are the UID and the resource version that a write requires; empty for any.
	OnlyUID, OnlyRV string
	// Reason is that of an event that is created, and About the UID of the object that it is about.
	Reason string
	About  types.UID
	// IsLive is set for a list that is not a cache's: those ask for a resource version or for pages, except to begin again
	// after the API server has rejected that.
	IsLive bool
	// Force means that an apply takes fields from other managers.
	Force bool
}

func (r *Request) String() string {
	text := fmt.Sprintf("%s %s %s -> %d", r.Verb, r.Resource, r.Name, r.Status)
	if r.Fault != nil {
		text += " (" + r.Fault.String() + ")"
	}
	return text
}

// IsWrite reports whether the request is a write.
func (r *Request) IsWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// isLiveRead reports whether the operator reads one object, not for a cache.
func (r *Request) isLiveRead() bool { return !r.IsWrite() && r.Verb != "watch" && r.Name != "" }

// IsDone reports whether a write has succeeded.
func (r *Request) IsDone() bool {
	return r.Status >= 200 && r.Status < 300
}

// IsOld reports whether it is a list that was served an old state.
func (r *Request) IsOld() bool {
	return r.Verb == "list" && r.Rule == 0 && r.Fault != nil && r.Fault.Kind == Age
}

// Watched returns what a watch is for: a resource in a namespace.
func (r *Request) Watched() string { return r.Namespace + "/" + r.Resource }

// IsCreation reports whether the request has created an object, which an apply can, too.
func (r *Request) IsCreation() bool {
	return r.Status == http.StatusCreated
}

var infos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// read reads a request.
func read(r *http.Request, body []byte) (*Request, error) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		return nil, err
	}
	request := &Request{At: time.Now(), Verb: info.Verb, Namespace: info.Namespace, Name: info.Name}
	if !info.IsResourceRequest {
		return request, nil
	}
	request.Resource = info.APIGroup + "/" + info.Resource
	if info.Subresource != "" {
		request.Resource += "/" + info.Subresource
	}
	switch request.Verb {
	case "create":
		if object := metaOf(body); object != nil {
			request.Name = object.GetName()
		}
		if event, ok := decode(body).(*eventsv1.Event); ok {
			request.Reason, request.About = event.Reason, event.Regarding.UID
		}
	case "list":
		request.IsLive = !r.URL.Query().Has("resourceVersion") && !r.URL.Query().Has("limit")
	case "delete":
		request.OnlyUID = deletedUID(body)
	case "patch":
		request.Force = r.URL.Query().Get("force") == "true"
		request.OnlyUID, request.OnlyRV = conditionsOf(r.Header.Get("Content-Type"), body)
	}
	return request, nil
}

// deletedUID returns the UID that a deletion requires; empty for any.
func deletedUID(body []byte) string {
	options, ok := decode(body).(*metav1.DeleteOptions)
	if !ok || options.Preconditions == nil {
		return ""
	}
	return string(ptr.Deref(options.Preconditions.UID, ""))
}

// conditionsOf returns the UID and the resource version that a patch requires; empty for any. A merge patch or an apply
// has them in its metadata, a JSON patch (of the last release) in test operations.
func conditionsOf(contentType string, body []byte) (uid, resourceVersion string) {
	if strings.HasPrefix(contentType, "application/json-patch+json") {
		var operations []struct {
			Op, Path string
			Value    any
		}
		if json.Unmarshal(body, &operations) != nil {
			return "", ""
		}
		tested := map[string]string{}
		for _, operation := range operations {
			if value, ok := operation.Value.(string); ok && operation.Op == "test" {
				tested[operation.Path] = value
			}
		}
		return tested["/metadata/uid"], tested["/metadata/resourceVersion"]
	}
	if object := metaOf(body); object != nil {
		return string(object.GetUID()), object.GetResourceVersion()
	}
	return "", ""
}

// metaOf returns the metadata of an object in JSON or protobuf; nil if the content is none.
func metaOf(content []byte) metav1.Object {
	if len(content) > 0 && content[0] == '{' {
		object := &metav1.PartialObjectMetadata{}
		if json.Unmarshal(content, object) != nil {
			return nil
		}
		return object
	}
	object, err := meta.Accessor(decode(content))
	if err != nil {
		return nil
	}
	return object
}

// decode returns a built-in object in JSON or protobuf; nil if the content is none.
func decode(content []byte) runtime.Object {
	decoded, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return nil
	}
	return decoded
}
