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

// controllers is how many an operator has, each of which says in the log when it begins to work.
var controllers = len(kinds.All)

// mostCrashes is how often it is started again after it has ended by itself.
const mostCrashes = 3

// manager is an operator that is started again when it ends, as Kubernetes does. It is safe for concurrent use.
type manager struct {
	program     string
	environment []string
	flags       []string
	isTolerant  bool // that it ends by itself before it works, or as it does not lead any more, is no crash

	mu        sync.Mutex
	processes []*testenv.Manager // all there were, the last of which runs
	wanted    bool               // whether it is to be started again
	killed    bool               // whether the process has been killed on purpose
	crashes   []string           // ends that nobody has asked for
}

// start starts it, with some flags more for as long as it is not stopped.
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

// process returns the process that runs; nil if it has never been started.
func (m *manager) process() *testenv.Manager {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.processes) == 0 {
		return nil
	}
	return m.processes[len(m.processes)-1]
}

// mayEnd tells of an operator that has logged this whether it may end by itself where requests go wrong.
func mayEnd(logged string) bool {
	return !hasBegun(logged, controllers) || strings.Contains(logged, "leader election lost")
}

// hasBegun tells whether so many controllers say that they work.
func hasBegun(logged string, controllers int) bool {
	return strings.Count(logged, `"msg":"Starting workers"`) >= controllers
}

// starts returns how often it has been started.
func (m *manager) starts() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.processes)
}

// kill ends the process without warning. It is started again.
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
func (m *manager) current() string { return m.process().Logs() }

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
	for _, process := range m.processes {
		all.WriteString(process.Logs())
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
