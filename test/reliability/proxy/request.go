package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Leases is the resource by which operators find out who leads.
const Leases = "coordination.k8s.io/leases"

// Request is one that the operator has made.
type Request struct {
	At       time.Time
	Verb     string
	Resource string // with its group and subresource; empty for a URL that is no resource
	Name     string
	// Fault is what went wrong with it; nil if nothing did. Rule is which of the proxy's rules says so, from 1; 0 for
	// none.
	Fault *Fault
	Rule  int
	// Status is what the API server answered; 0 if it was not asked, or has not answered yet.
	Status int
	// AnsweredUID and AnsweredRV are of the object that the answer to a write holds.
	AnsweredUID string
	AnsweredRV  string
	// OnlyUID is the UID of the only object that a write is conditioned on; empty if it is for any object of the name.
	OnlyUID string
	// OnlyRV is the only resource version that a patch is conditioned on, which is one version of one object; empty
	// if it is for any.
	OnlyRV string
	// Reason is that of an event that is created.
	Reason string
	// Force tells of an apply that it takes fields from others.
	Force bool
}

func (r *Request) String() string {
	told := ""
	if r.Fault != nil {
		told = " (" + r.Fault.String() + ")"
	}
	return fmt.Sprintf("%s %s %s -> %d%s", r.Verb, r.Resource, r.Name, r.Status, told)
}

// IsWrite tells whether the request is to change something.
func (r *Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// IsDone tells whether the API server has carried out a write.
func (r *Request) IsDone() bool {
	return r.Status >= 200 && r.Status < 300
}

// IsOld tells whether it is a list of which an old world was served.
func (r *Request) IsOld() bool {
	return r.Verb == "list" && r.Rule == 0 && r.Fault != nil && r.Fault.Kind == Age
}

// IsCreation tells whether the request has created an object: by an apply, which is a patch, as well.
func (r *Request) IsCreation() bool {
	return r.Status == http.StatusCreated
}

var infos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// read returns what a request says of itself.
func read(r *http.Request, body []byte) (*Request, error) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		return nil, err
	}
	request := &Request{At: time.Now(), Verb: info.Verb, Name: info.Name}
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
			request.Reason = event.Reason
		}
	case "delete":
		request.OnlyUID = deletedUID(body)
	case "patch":
		request.Force = r.URL.Query().Get("force") == "true"
		request.OnlyUID, request.OnlyRV = conditionsOf(r.Header.Get("Content-Type"), body)
	}
	return request, nil
}

// deletedUID returns the UID of the only object that a deletion is for.
func deletedUID(body []byte) string {
	options, ok := decode(body).(*metav1.DeleteOptions)
	if !ok || options.Preconditions == nil || options.Preconditions.UID == nil {
		return ""
	}
	return string(*options.Preconditions.UID)
}

// conditionsOf returns the UID and the resource version that a patch is conditioned on; empty for none. A merge patch
// or an apply names them in its metadata, a JSON patch (of the last release) in test operations.
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

// metaOf returns the metadata of an object in JSON or protobuf; nil if it is none.
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

// decode returns an object of Kubernetes' own in JSON or protobuf; nil if it is none.
func decode(content []byte) runtime.Object {
	decoded, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return nil
	}
	return decoded
}
