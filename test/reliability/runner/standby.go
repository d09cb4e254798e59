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

// leaderRole is the role by which operators find out who leads.
const leaderRole = "memcached-operator-leader-election-role"

// standby is a second operator.
type standby struct {
	proxy   *proxy.Proxy
	manager *manager
}

// addStandby prepares a second operator. Each plan has a lease of its own, in its namespace, so the operator's rights
// to one have to be there.
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
		return fmt.Errorf("letting the operators have a lease: %w", err)
	}
	s.standby = &standby{}
	s.standby.proxy, s.standby.manager, err = s.operator(ctx)
	return err
}

// end ends the second operator.
func (b *standby) end() {
	if b.manager.starts() > 0 {
		_ = b.manager.stop(syscall.SIGKILL)
	}
	b.proxy.Stop()
}

// flags returns those that the operators of a plan need because of each other.
func (s *stage) flags() []string {
	if s.standby == nil {
		return nil
	}
	return []string{"--leader-elect", "--leader-election-namespace=" + s.Namespace}
}

// thaw has the first operator go on, which has long lost the lead to the other one and does not know yet if it stood
// still, and what it had requested before be carried out now. It returns what is lacking when that is over: one that
// has lost the lead ends, and is started again to stand by; one that was cut off has done so before, by itself. A write
// that nothing waits for may be over before the lead is.
func (s *stage) thaw(ctx context.Context) string {
	if fired(s.requests()) > 0 {
		if err := s.standby.manager.works(ctx, controllers); err != nil {
			return "the other operator does not take the lead: " + err.Error()
		}
	}
	starts := s.manager.starts()
	if s.plan.isCutOff() && fired(s.requests()) > 0 {
		if starts == firstStart {
			return "the operator that is cut off does not end"
		}
		starts = firstStart
	}
	s.proxy.Release()
	s.manager.process().Send(syscall.SIGCONT)
	return s.settle(ctx, thawQuiet, func() string {
		if fired(s.requests()) > 0 && s.manager.starts() == starts {
			return "the operator that has lost the lead does not end"
		}
		return s.differs()
	})
}

// firstStart is how many starts there are of an operator that has never ended.
const firstStart = 1

// isCutOff tells whether the operator is cut off in a plan.
func (p *Plan) isCutOff() bool {
	return slices.ContainsFunc(p.Rules, func(rule proxy.Rule) bool { return rule.Fault == proxy.Cutting })
}
