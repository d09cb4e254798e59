package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/test/reliability/proxy"
	"github.com/example/memcached-operator/test/testenv"
)

// leaderRole is the role for leader election.
const leaderRole = "memcached-operator-leader-election-role"

// standby is a second operator, which takes over when the first one loses its lease.
type standby struct {
	proxy   *proxy.Proxy
	manager *manager
}

// addStandby prepares a second operator. The lease of a plan is in the plan's namespace, so it copies the role there.
func (s *stage) addStandby(ctx context.Context) error {
	var role rbacv1.Role
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: testenv.OperatorNamespace, Name: leaderRole},
		&role); err != nil {
		return err
	}
	named := metav1.ObjectMeta{Namespace: s.Namespace, Name: leaderRole}
	err := errors.Join(
		s.Client.Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: role.Rules}),
		s.Client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: leaderRole},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: testenv.OperatorNamespace,
				Name: testenv.OperatorServiceAccount}},
		}))
	if err != nil {
		return fmt.Errorf("granting the permissions for a lease: %w", err)
	}
	s.standby = &standby{}
	s.standby.proxy, s.standby.manager, err = s.operator(ctx)
	return err
}

// end kills the second operator.
func (b *standby) end() {
	if b.manager.starts() > 0 {
		_ = b.manager.stop(syscall.SIGKILL)
	}
	b.proxy.Stop()
}

// flags returns the flags for leader election; none without a second operator.
func (s *stage) flags() []string {
	if s.standby == nil {
		return nil
	}
	return []string{"--leader-elect", "--leader-election-namespace=" + s.Namespace}
}

// thaw resumes the first operator, which has lost its lease in the meantime, and forwards the requests that it sent
// before. It returns what is missing after that. A frozen operator must exit once it notices the lost lease, and is
// restarted as the standby; one that was cut off must have exited before.
func (s *stage) thaw(ctx context.Context) string {
	if fired(s.requests()) > 0 {
		if err := s.standby.manager.works(ctx, controllers); err != nil {
			return "the second operator does not acquire the lease: " + err.Error()
		}
	}
	starts := s.manager.starts()
	if s.plan.isCutOff() && fired(s.requests()) > 0 {
		if starts == firstStart {
			return "the operator that is cut off does not exit"
		}
		starts = firstStart
	}
	s.proxy.Release()
	s.manager.process().Send(syscall.SIGCONT)
	return s.settle(ctx, thawQuiet, func() string {
		if fired(s.requests()) > 0 && s.manager.starts() == starts {
			return "the operator that has lost its lease does not exit"
		}
		return s.differs()
	})
}

// firstStart is the number of starts of an operator that has never exited.
const firstStart = 1

// isCutOff reports whether a fault of the plan cuts the operator off from the API server.
func (p *Plan) isCutOff() bool {
	return slices.ContainsFunc(p.Rules, func(rule proxy.Rule) bool { return rule.Fault == proxy.Cutting })
}
