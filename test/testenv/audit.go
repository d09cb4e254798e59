package testenv

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Audit reads the API server's audit log. It is safe for concurrent use.
type Audit struct {
	path string

	mu       sync.Mutex
	read     int64
	requests []Request
}

// Request is a request that the API server has answered.
type Request struct {
	User        string
	Verb        string // get, list, watch, create, update, patch, delete or deletecollection
	Group       string
	Resource    string // with its subresource, such as foos/status; empty for a URL that is no resource
	URL         string
	Namespace   string
	Name        string
	Code        int32
	At          time.Time
	ResponseUID string // the UID of the object in the response; empty if responses are not logged
	ResponseRV  string
	OnlyUID     string // the UID that a deletion requires; empty for any, or if requests are not logged
	// Refused is the object in a creation that the API server has rejected as invalid; nil for other requests, or if
	// requests are not logged.
	Refused json.RawMessage
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %s/%s -> %d", r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
}

// IsWrite reports whether the request was to change an object.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// IsCreation reports whether the request has created an object, also by an apply patch.
func (r Request) IsCreation() bool {
	return r.Code == 201
}

// OpenAudit reads an audit log from its current end on.
func OpenAudit(path string) (*Audit, error) {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	a := &Audit{path: path}
	if err == nil {
		a.read = info.Size()
	}
	return a, nil
}

// Mark is a position in the log.
type Mark int

// Now returns the position in the log after all requests answered so far.
func (a *Audit) Now() Mark {
	return Mark(len(a.all()))
}

// Since returns the requests after a mark that pass all filters.
func (a *Audit) Since(mark Mark, filters ...func(Request) bool) []Request {
	var found []Request
next:
	for _, request := range a.all()[mark:] {
		for _, passes := range filters {
			if !passes(request) {
				continue next
			}
		}
		found = append(found, request)
	}
	return found
}

// ByOperator is a filter for the operator's requests, except those for leader election and for access to its metrics.
func ByOperator(r Request) bool {
	switch r.Group + "/" + r.Resource {
	case "coordination.k8s.io/leases", "authentication.k8s.io/tokenreviews",
		"authorization.k8s.io/subjectaccessreviews":
		return false
	}
	return r.User == OperatorUser
}

// In returns a filter for a namespace.
func In(namespace string) func(Request) bool {
	return func(r Request) bool { return r.Namespace == namespace }
}

// all returns all requests so far.
func (a *Audit) all() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.Open(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		panic(err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // the line is not complete yet
			return a.requests
		}
		a.read += int64(len(line))
		if request, ok := parse(line); ok {
			a.requests = append(a.requests, request)
		}
	}
}

// parse returns the request of one line, unless it is a watch that has only begun or ended.
func parse(line []byte) (Request, bool) {
	var event struct {
		Stage          string
		Verb           string
		RequestURI     string
		User           struct{ Username string }
		ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
		ResponseStatus struct{ Code int32 }
		ResponseObject struct{ Metadata metav1.ObjectMeta }
		RequestObject  json.RawMessage
		StageTimestamp metav1.MicroTime
	}
	if err := json.Unmarshal(line, &event); err != nil {
		panic(fmt.Sprintf("audit log: %v: %s", err, line))
	}
	if event.Verb == "watch" && event.Stage == "ResponseComplete" {
		return Request{}, false
	}
	resource := event.ObjectRef.Resource
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	var options struct{ Preconditions struct{ UID string } }
	if event.Verb == "delete" && event.RequestObject != nil {
		if err := json.Unmarshal(event.RequestObject, &options); err != nil {
			panic(fmt.Sprintf("audit log: %v: %s", err, line))
		}
	}
	var refused json.RawMessage
	if event.Verb == "create" && event.ResponseStatus.Code == http.StatusUnprocessableEntity {
		refused = event.RequestObject
	}
	url, _, _ := strings.Cut(event.RequestURI, "?")
	return Request{
		User:        event.User.Username,
		Verb:        event.Verb,
		Group:       event.ObjectRef.APIGroup,
		Resource:    resource,
		URL:         url,
		Namespace:   event.ObjectRef.Namespace,
		Name:        event.ObjectRef.Name,
		Code:        event.ResponseStatus.Code,
		At:          event.StageTimestamp.Time,
		ResponseUID: string(event.ResponseObject.Metadata.UID),
		ResponseRV:  event.ResponseObject.Metadata.ResourceVersion,
		OnlyUID:     options.Preconditions.UID,
		Refused:     refused,
	}, true
}
