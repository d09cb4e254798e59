package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/memcached-operator/test/kinds"
	"github.com/example/memcached-operator/test/testenv"
)

// controllers is the number of controllers of an operator. Each logs its start.
var controllers = len(kinds.All)

// mostCrashes is the number of crashes after which an operator is not restarted.
const mostCrashes = 3

// manager runs an operator and restarts it when it exits, as Kubernetes does. It is safe for concurrent use.
type manager struct {
	program     string
	environment []string
	flags       []string
	isTolerant  bool // it may exit before its controllers have started, and when it loses its lease

	mu        sync.Mutex
	processes []*testenv.Manager // the last one is running
	restarts  bool               // whether it is restarted when it exits
	killed    bool               // whether the test killed the process
	crashes   []string           // errors of unexpected exits
}

// start starts the operator. The flags are added to its own until it is stopped.
func (m *manager) start(flags ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restarts = true
	return m.startProcess(flags)
}

func (m *manager) startProcess(flags []string) error {
	process, err := testenv.Run(m.program, m.environment, slices.Concat(m.flags, flags))
	if err != nil {
		return err
	}
	m.processes, m.killed = append(m.processes, process), false
	go func() {
		err := process.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.restarts || process != m.processes[len(m.processes)-1] {
			return
		}
		if m.isTolerant && !m.killed && mayEnd(process.Logs()) {
			time.Sleep(200 * time.Millisecond) // instead of the longer backoff of Kubernetes
		} else if !m.killed {
			m.crashes = append(m.crashes, fmt.Sprintf("the operator exited unexpectedly: %v", err))
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

// process returns the running process.
func (m *manager) process() *testenv.Manager {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.processes[len(m.processes)-1]
}

// mayEnd reports whether an operator with this log may exit when requests fail.
func mayEnd(logged string) bool {
	return !hasBegun(logged, controllers) || strings.Contains(logged, "leader election lost")
}

// hasBegun reports whether at least this number of controllers have started.
func hasBegun(logged string, controllers int) bool {
	return strings.Count(logged, `"msg":"Starting workers"`) >= controllers
}

// starts returns how often the operator was started.
func (m *manager) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.processes)
}

// kill kills the process, which is then restarted.
func (m *manager) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	m.processes[len(m.processes)-1].Send(syscall.SIGKILL)
}

// stop terminates the operator, which is not restarted, and returns the error of the process: nil for exit code 0.
func (m *manager) stop(signal syscall.Signal) error {
	m.mu.Lock()
	m.restarts = false
	m.mu.Unlock()
	process := m.process()
	err := process.Signal(signal)
	process.Kill() // if it is still running
	return err
}

// ends returns the errors of unexpected exits.
func (m *manager) ends() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.crashes)
}

// isGivenUp reports whether the operator is not restarted any more, because it crashed too often.
func (m *manager) isGivenUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.crashes) >= mostCrashes
}

// works waits until this number of controllers of the process have started.
func (m *manager) works(ctx context.Context, controllers int) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return hasBegun(m.current(), controllers), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the operator's controllers to start: %w\n%s", err, m.log())
	}
	return nil
}

// current returns the log of the running process.
func (m *manager) current() string { return m.process().Logs() }

// rest returns a function that returns what is logged from now on.
func (m *manager) rest() func() string {
	before := len(m.log())
	return func() string { return m.log()[before:] }
}

// log returns the logs of all processes.
func (m *manager) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all strings.Builder
	for _, process := range m.processes {
		all.WriteString(process.Logs())
	}
	return all.String()
}

// replace stops the operator and sets the program and environment for the next start.
func (m *manager) replace(program string, environment []string) error {
	err := m.stop(syscall.SIGTERM)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program, m.environment = program, environment
	return err
}
