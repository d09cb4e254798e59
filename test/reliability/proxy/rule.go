package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is what a fault does.
type Kind string

// The kinds of faults.
const (
	KillBefore Kind = "kill-before" // the operator is killed before the request arrives
	KillAfter  Kind = "kill-after"  // the operator is killed after the request, before the answer
	DropAnswer Kind = "drop-answer" // the connection breaks after the request, before the answer
	Refuse     Kind = "refuse"      // the answer is an error, without the request
	Disown     Kind = "disown"      // the answer is an error, after the request
	Delay      Kind = "delay"       // the request arrives late
	Hang       Kind = "hang"        // the request does not arrive, and has no answer

	Freeze Kind = "freeze"  // the operator is stopped; the request arrives when it is resumed
	CutOff Kind = "cut-off" // no request arrives until another operator leads; all watches end

	ServerAway Kind = "apiserver-away" // the API server is killed before the request, and started again
	// likewise, after the request, before the answer
	ServerAwayAfter Kind = "apiserver-away-after"
	EtcdAway        Kind = "etcd-away" // etcd is killed before the request, and started again

	PauseWatches Kind = "pause-watches" // all watches are paused before the request
	CloseWatches Kind = "close-watches" // all watches end before the request
	// likewise, and the next ones are answered with 410
	ExpireWatches Kind = "expire-watches"
	// as KillAfter; the next operator is served the state before the request, and then what came after
	Age     Kind = "age"
	AgeMore Kind = "age-more" // likewise, with the state of the last call of Remember
	// likewise, but only of children; its own kinds are served in their present state
	AgeChildren Kind = "age-children"
)

// Fault is a fault.
type Fault struct {
	Kind Kind
	// Code is the answer of Refuse and Disown.
	Code int
	// For is the duration of Delay and PauseWatches; the time after which Hang breaks the connection if the operator has
	// not; and the time by which Age, AgeMore and AgeChildren delay later changes.
	For time.Duration
}

func (f Fault) String() string {
	switch f.Kind {
	case Refuse:
		return fmt.Sprint(f.Code)
	case Disown:
		return fmt.Sprintf("%d-after", f.Code)
	}
	return string(f.Kind)
}

// oldFor is how long an old state is served.
const oldFor = 1500 * time.Millisecond

// Classes group the faults that hit writes by how the operator reacts. In order: the operator ends; the write is
// carried out but seems to have failed; it is forbidden; it conflicts; it is late (client-go repeats it after a 429);
// it fails; watches are late or end; lists and watches show an old state.
var Classes = [][]Fault{
	{{Kind: KillBefore}, {Kind: KillAfter}},
	{{Kind: DropAnswer}, {Kind: Disown, Code: http.StatusGatewayTimeout}},
	{{Kind: Refuse, Code: http.StatusForbidden}},
	{{Kind: Refuse, Code: http.StatusConflict}},
	{{Kind: Delay, For: 1500 * time.Millisecond}, {Kind: Refuse, Code: http.StatusTooManyRequests}},
	{{Kind: Refuse, Code: http.StatusInternalServerError}, {Kind: Refuse, Code: http.StatusServiceUnavailable},
		{Kind: Refuse, Code: http.StatusGatewayTimeout}, {Kind: Hang, For: 40 * time.Second}},
	{{Kind: PauseWatches, For: 2 * time.Second}, {Kind: CloseWatches}, {Kind: ExpireWatches}},
	{{Kind: Age, For: oldFor}, {Kind: AgeMore, For: oldFor}, {Kind: AgeChildren, For: oldFor}},
}

// Faults are those of all classes.
var Faults = slices.Concat(Classes...)

// Freezing and Cutting are for operators with a standby, which can acquire the lease.
var (
	Freezing = Fault{Kind: Freeze}
	Cutting  = Fault{Kind: CutOff}
	ForPairs = []Fault{Freezing, Cutting}
)

// Outages are for operators whose control plane can be killed.
var Outages = []Fault{{Kind: ServerAway}, {Kind: ServerAwayAfter}, {Kind: EtcdAway}}

// Storm makes a quarter of all requests fail: six rules of one in twenty, one after the other.
var Storm = []Rule{
	storm(Fault{Kind: Refuse, Code: http.StatusConflict}),
	storm(Fault{Kind: Refuse, Code: http.StatusTooManyRequests}),
	storm(Fault{Kind: Refuse, Code: http.StatusInternalServerError}),
	storm(Fault{Kind: Refuse, Code: http.StatusServiceUnavailable}),
	storm(Fault{Kind: Disown, Code: http.StatusGatewayTimeout}),
	storm(Fault{Kind: DropAnswer}),
}

func storm(fault Fault) Rule {
	return Rule{Match: Match{Verb: "any"}, Share: 0.05, Fault: fault}
}

// LiveRead is the verb of a Match for reads of one object, which are not those of a cache.
const LiveRead = "read"

// Match selects requests.
type Match struct {
	// Verb is that of RBAC, LiveRead, or "any" for all requests for resources.
	Verb string
	// Resource is with its group and subresource, such as samplecontroller.k8s.io/foos/status; empty for all.
	Resource string
}

func (m Match) String() string {
	return strings.TrimSpace(m.Verb + " " + m.Resource)
}

func (m Match) fits(r *Request) bool {
	return (m.Resource == "" || m.Resource == r.Resource) &&
		(m.Verb == r.Verb || m.Verb == "any" && r.Resource != "" || m.Verb == LiveRead && r.isLiveRead())
}

// Rule injects a fault into some requests.
type Rule struct {
	Match Match
	// Nth is which of the requests that match, from 1; 0 for all.
	Nth int
	// For is how long the rule applies, from its first match; 0 for no limit.
	For time.Duration
	// Share is the random share of them; 0 for all.
	Share float64
	Fault Fault
}

func (r Rule) String() string {
	which := ""
	switch {
	case r.Nth > 0:
		which = fmt.Sprintf(" #%d", r.Nth)
	case r.For > 0:
		which = fmt.Sprintf(" for %s", r.For)
	}
	return fmt.Sprintf("%s%s: %s", r.Match, which, r.Fault)
}

var rulePattern = regexp.MustCompile(`^(\w+) (\S+) (?:#(\d+)|for (\w+)): (\S+)$`)

// ParseRule reads what String returns, for one of Faults, Outages or ForPairs, and one request or all for a while.
func ParseRule(text string) (Rule, error) {
	parts := rulePattern.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Rule{}, fmt.Errorf("%q is not a fault: the format is %q", text, "patch apps/deployments #1: kill-after")
	}
	rule := Rule{Match: Match{Verb: parts[1], Resource: parts[2]}}
	var err error
	if parts[3] != "" {
		rule.Nth, err = strconv.Atoi(parts[3])
	} else {
		rule.For, err = time.ParseDuration(parts[4])
	}
	if err != nil {
		return Rule{}, err
	}
	for _, fault := range slices.Concat(Faults, Outages, ForPairs) {
		if fault.String() == parts[5] {
			rule.Fault = fault
			return rule, nil
		}
	}
	return Rule{}, fmt.Errorf("%q is not a known fault: %v", parts[5], Faults)
}

// ParseRules reads rules, separated by semicolons.
func ParseRules(texts string) ([]Rule, error) {
	var rules []Rule
	for text := range strings.SplitSeq(texts, ";") {
		rule, err := ParseRule(text)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// counted is a rule with a count.
type counted struct {
	Rule
	seen  int
	until time.Time // it applies; zero for ever, or before it has begun
}

// applies counts a request, and reports whether it fails.
func (c *counted) applies(r *Request, chance *rand.Rand) bool {
	if !c.Match.fits(r) {
		return false
	}
	c.seen++
	if c.For > 0 && c.seen == 1 {
		c.until = r.At.Add(c.For)
	}
	if !c.until.IsZero() && r.At.After(c.until) {
		return false
	}
	return (c.Nth == 0 || c.Nth == c.seen) && (c.Share == 0 || chance.Float64() < c.Share)
}

// reasons are those of the API server.
var reasons = map[int]metav1.StatusReason{
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}
