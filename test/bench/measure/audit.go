package measure

import (
	"fmt"
	"strings"
)

// AuditPolicy returns the policy of an API server that logs every request of some users, and no others.
func AuditPolicy(users ...string) string {
	quoted := make([]string, len(users))
	for i, user := range users {
		quoted[i] = fmt.Sprintf("%q", user)
	}
	return `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + strings.Join(quoted, ", ") + `]
- level: None
`
}
