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
)

// Kind is what becomes of a request.
type Kind string

// What can become of a request. All but those of watches are about the request itself.
const (
	KillBefore Kind = "kill-before" // the operator is killed, and the request never arrives
	KillAfter  Kind = "kill-after"  // the request is carried out, and the operator is killed before it is told
	DropAnswer Kind = "drop-answer" // the request is carried out, and the connection breaks before the operator is told
	Refuse     Kind = "refuse"      // the request is answered with an error, and not carried out
	Disown     Kind = "disown"      // the request is carried out, and answered with an error
	Delay      Kind = "delay"       // the request is carried out late
	Hang       Kind = "hang"        // the request is neither carried out nor answered

	Freeze Kind = "freeze"  // the operator stands still; the request is carried out when it goes on
	CutOff Kind = "cut-off" // neither this request nor any other arrives until another operator leads; all watches end

	ServerAway Kind = "apiserver-away" // the API server is killed just before the request, and started again
	// likewise, just after the request is carried out, before the operator is told
	ServerAwayAfter Kind = "apiserver-away-after"
	EtcdAway        Kind = "etcd-away" // etcd is killed just before the request, and started again

	PauseWatches Kind = "pause-watches" // the request is carried out; all watches stand still from just before
	CloseWatches Kind = "close-watches" // the request is carried out; all watches end just before
	// as before, and the next ones are answered with 410: what they ask for is no longer kept
	ExpireWatches Kind = "expire-watches"
	// as KillAfter; the next operator is served the world of just before, and then what came after
	Age     Kind = "age"
	AgeMore Kind = "age-more" // likewise, with the world of the last call of Remember
)

// Fault is something to go wrong.
type Fault struct {
	Kind Kind
	// Code is what Refuse and Disown answer.
	Code int
	// For is how long Delay and PauseWatches take, after which time Hang breaks the connection if the operator has not,
	// and for how long Age and AgeMore hold back what came after.
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

// Faults are those that every write is tried with.
var Faults = []Fault{
	{Kind: KillBefore}, {Kind: KillAfter}, {Kind: DropAnswer},
	{Kind: Refuse, Code: http.StatusForbidden}, {Kind: Refuse, Code: http.StatusConflict},
	{Kind: Refuse, Code: http.StatusTooManyRequests},
	{Kind: Refuse, Code: http.StatusInternalServerError}, {Kind: Refuse, Code: http.StatusServiceUnavailable},
	{Kind: Refuse, Code: http.StatusGatewayTimeout}, {Kind: Disown, Code: http.StatusGatewayTimeout},
	{Kind: Delay, For: 1500 * time.Millisecond}, {Kind: Hang, For: 40 * time.Second},
	{Kind: PauseWatches, For: 2 * time.Second}, {Kind: CloseWatches}, {Kind: ExpireWatches},
	{Kind: Age, For: 1500 * time.Millisecond}, {Kind: AgeMore, For: 1500 * time.Millisecond},
}

// Freezing and Cutting are for operators of which another one can take the lead.
var (
	Freezing = Fault{Kind: Freeze}
	Cutting  = Fault{Kind: CutOff}
	ForPairs = []Fault{Freezing, Cutting}
)

// Outages are for operators whose control plane can be killed.
var Outages = []Fault{{Kind: ServerAway}, {Kind: ServerAwayAfter}, {Kind: EtcdAway}}

// Storm has a quarter of all requests go wrong, in many ways: six rules of one in twenty, one after the other.
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

// Match says which requests a rule is about.
type Match struct {
	// Verb is as RBAC has it; "any" for all that are about a resource.
	Verb string
	// Resource is with its group and subresource, such as samplecontroller.k8s.io/foos/status; empty for all.
	Resource string
}

func (m Match) String() string {
	return strings.TrimSpace(m.Verb + " " + m.Resource)
}

func (m Match) fits(r *Request) bool {
	return (m.Resource == "" || m.Resource == r.Resource) &&
		(m.Verb == r.Verb || m.Verb == "any" && r.Resource != "")
}

// Rule has some requests go wrong.
type Rule struct {
	Match Match
	// Nth is which of the requests that match, from 1; 0 for all.
	Nth int
	// For is for how long they do, from the first of them on; 0 for ever.
	For time.Duration
	// Share is how many of them, by chance; 0 for all.
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

// ParseRule returns the rule that String has made a text of, for one of Faults, Outages or ForPairs, and one request or
// all for a while.
func ParseRule(text string) (Rule, error) {
	parts := rulePattern.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Rule{}, fmt.Errorf("%q is no fault: it must be such as %q", text, "patch apps/deployments #1: kill-after")
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
	return Rule{}, fmt.Errorf("%q is none of the faults that there are: %v", parts[5], Faults)
}

// ParseRules returns the rules of texts as [ParseRule] takes them, separated by semicolons.
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

// counted is a rule at work.
type counted struct {
	Rule
	seen  int
	until time.Time // it holds; zero for ever, or before it has begun
}

// applies counts a request, and tells whether it is one that goes wrong.
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

// reasons are those that the API server gives with each code.
var reasons = map[int]string{
	http.StatusForbidden:           "Forbidden",
	http.StatusConflict:            "Conflict",
	http.StatusGone:                "Expired",
	http.StatusUnprocessableEntity: "Invalid",
	http.StatusTooManyRequests:     "TooManyRequests",
	http.StatusInternalServerError: "InternalError",
	http.StatusServiceUnavailable:  "ServiceUnavailable",
	http.StatusGatewayTimeout:      "Timeout",
}
