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

// controllers is how many an operator has, each of which logs its start.
var controllers = len(kinds.All)

// mostCrashes is how often an operator may end by itself.
const mostCrashes = 3

// manager is an operator that is restarted when it ends, as Kubernetes does. It is safe for concurrent use.
type manager struct {
	program     string
	environment []string
	flags       []string
	isTolerant  bool // it may end by itself before it works, and when it loses the lead

	mu        sync.Mutex
	processes []*testenv.Manager // the last one runs
	wanted    bool               // whether it is restarted
	killed    bool               // whether the process was killed on purpose
	crashes   []string           // when it ended by itself
}

// start starts it, with more flags until it is stopped.
func (m *manager) start(flags ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = true
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
		if !m.wanted || process != m.processes[len(m.processes)-1] {
			return
		}
		if m.isTolerant && !m.killed && mayEnd(process.Logs()) {
			time.Sleep(200 * time.Millisecond) // as Kubernetes waits, though longer
		} else if !m.killed {
			m.crashes = append(m.crashes, fmt.Sprintf("the operator ended by itself: %v", err))
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

// mayEnd reports whether an operator with this log may end by itself where requests fail.
func mayEnd(logged string) bool {
	return !hasBegun(logged, controllers) || strings.Contains(logged, "leader election lost")
}

// hasBegun reports whether so many controllers work.
func hasBegun(logged string, controllers int) bool {
	return strings.Count(logged, `"msg":"Starting workers"`) >= controllers
}

// starts returns how often it has been started.
func (m *manager) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.processes)
}

// kill kills the process. It is restarted.
func (m *manager) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = true
	m.processes[len(m.processes)-1].Send(syscall.SIGKILL)
}

// stop ends it for good, and returns how: nil for exit code 0.
func (m *manager) stop(signal syscall.Signal) error {
	m.mu.Lock()
	m.wanted = false
	m.mu.Unlock()
	process := m.process()
	err := process.Signal(signal)
	process.Kill() // if it has not ended
	return err
}

// ends returns when it ended by itself.
func (m *manager) ends() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.crashes)
}

// isGivenUp reports whether it is not restarted any more, because it always ends by itself.
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

// replace stops it and sets the program and environment of the next start.
func (m *manager) replace(program string, environment []string) error {
	err := m.stop(syscall.SIGTERM)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.program, m.environment = program, environment
	return err
}
