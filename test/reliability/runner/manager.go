package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/memcached-operator/test/testenv"
)

// controllers is how many an operator has, each of which says in the log when it begins to work.
const controllers = 3

// mostCrashes is how often it is started again after it has ended by itself.
const mostCrashes = 3

// manager is an operator that is started again when it ends, as Kubernetes does. It is safe for concurrent use.
type manager struct {
	program     string
	environment []string
	flags       []string
	isTolerant  bool // that it ends by itself before it works, or as it does not lead any more, is no crash

	mu      sync.Mutex
	process *exec.Cmd
	ended   *end              // of the process
	logs    *testenv.Buffer   // of the process
	all     []*testenv.Buffer // of all processes there were
	wanted  bool              // whether it is to be started again
	killed  bool              // whether the process has been killed on purpose
	crashes []string          // ends that nobody has asked for
}

// end is how a process has ended, once the channel is closed.
type end struct {
	is  chan struct{}
	err error
}

// start starts it, with some flags more for as long as it is not stopped.
func (m *manager) start(flags ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
	return m.startProcess(flags)
}

func (m *manager) startProcess(flags []string) error {
	process := exec.Command(m.program, append(m.flags[:len(m.flags):len(m.flags)], flags...)...)
	process.Env = append(testenv.Environment(), m.environment...)
	logs := &testenv.Buffer{}
	process.Stdout, process.Stderr = logs, logs
	if err := process.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", m.program, err)
	}
	ended := &end{is: make(chan struct{})}
	m.process, m.ended, m.logs, m.killed = process, ended, logs, false
	m.all = append(m.all, logs)
	go func() {
		err := process.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		ended.err = err
		defer close(ended.is) // whoever waits for it may start another one, so what follows comes first
		if !m.wanted {
			return
		}
		if m.isTolerant && !m.killed && mayEnd(logs.String()) {
			time.Sleep(200 * time.Millisecond) // as Kubernetes waits, though longer
		} else if !m.killed {
			m.crashes = append(m.crashes, fmt.Sprintf("the operator has ended by itself: %v", err))
			if len(m.crashes) == mostCrashes {
				return
			}
		}
		if err := m.startProcess(flags); err != nil {
			m.crashes = append(m.crashes, err.Error())
		}
	}()
	return nil
}

// mayEnd tells of an operator that has logged this whether it may end by itself where requests go wrong.
func mayEnd(logged string) bool {
	return !hasBegun(logged, controllers) || strings.Contains(logged, "leader election lost")
}

// hasBegun tells whether so many controllers say that they work.
func hasBegun(logged string, controllers int) bool {
	return strings.Count(logged, `"msg":"Starting workers"`) >= controllers
}

// isStarted tells whether it has ever been started.
func (m *manager) isStarted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process != nil
}

// starts returns how often it has been started.
func (m *manager) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}

// kill ends the process without warning. It is started again.
func (m *manager) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	_ = m.process.Process.Kill()
}

// signal sends a signal to the process, which is not to end by it.
func (m *manager) signal(signal syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.process.Process.Signal(signal)
}

// stop ends it for good, and returns how: nil for exit code 0.
func (m *manager) stop(signal syscall.Signal) error {
	m.mu.Lock()
	m.wanted = false
	process, ended := m.process, m.ended
	m.mu.Unlock()
	_ = process.Process.Signal(signal)
	select {
	case <-ended.is:
		return ended.err
	case <-time.After(45 * time.Second):
		_ = process.Process.Kill()
		<-ended.is
		return errors.New("the operator does not end within 45 s of " + signal.String())
	}
}

// ends returns ends that nobody has asked for.
func (m *manager) ends() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.crashes)
}

// isGivenUp tells whether it is not started again any more, because it always ends by itself.
func (m *manager) isGivenUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.crashes) >= mostCrashes
}

// works waits until so many controllers of the process work.
func (m *manager) works(ctx context.Context, controllers int) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return hasBegun(m.current(), controllers), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the operator works: %w\n%s", err, m.log())
	}
	return nil
}

// current returns the log of the process that runs.
func (m *manager) current() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs.String()
}

// rest begins to note what is logged; the function returned returns what that was.
func (m *manager) rest() func() string {
	before := len(m.log())
	return func() string { return m.log()[before:] }
}

// log returns the logs of all processes.
func (m *manager) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all strings.Builder
	for _, log := range m.all {
		all.WriteString(log.String())
	}
	return all.String()
}

// replace stops it and has another program, with another environment, be started the next time.
func (m *manager) replace(program string, environment []string) error {
	err := m.stop(syscall.SIGTERM)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program, m.environment = program, environment
	return err
}
