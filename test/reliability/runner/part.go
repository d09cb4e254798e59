package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/example/memcached-operator/test/bench/measure"
	"github.com/example/memcached-operator/test/testenv"
)

// part is a process of the control plane that can be killed and started again with the same flags.
type part struct {
	flags   []string // the first is the program
	pid     int
	command *exec.Cmd      // nil for a process that envtest started
	logs    testenv.Buffer // the output of command
}

// runningPart finds a process of the control plane by the name of its program.
func runningPart(name string) (*part, error) {
	pid, err := measure.Child(name)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	return &part{flags: strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"), pid: pid}, nil
}

// value returns the value of a flag; "" if there is none.
func (p *part) value(flag string) string {
	for _, text := range p.flags {
		if value, ok := strings.CutPrefix(text, flag+"="); ok {
			return value
		}
	}
	return ""
}

// another returns a part with other values of some flags, not started yet. An empty value removes the flag.
func (p *part) another(values map[string]string) *part {
	flags := []string{p.flags[0]}
	for _, flag := range p.flags[1:] {
		if _, isOther := values[strings.SplitN(flag, "=", 2)[0]]; !isOther {
			flags = append(flags, flag)
		}
	}
	for flag, value := range values {
		if value != "" {
			flags = append(flags, flag+"="+value)
		}
	}
	return &part{flags: flags}
}

func (p *part) start() error {
	p.command = exec.Command(p.flags[0], p.flags[1:]...)
	p.command.Stdout, p.command.Stderr = &p.logs, &p.logs
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("starting %s again: %w", p.flags[0], err)
	}
	p.pid = p.command.Process.Pid
	return nil
}

// kill kills the process and waits until it has terminated.
func (p *part) kill() error {
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s: %w", p.flags[0], err)
	}
	if p.command != nil {
		_ = p.command.Wait() // it was killed
		return nil
	}
	for syscall.Kill(p.pid, 0) == nil { // the process exists until envtest, its parent, has waited for it
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// killStarted kills the parts that start has started, and not those that envtest has: it stops these itself.
func killStarted(parts ...*part) (err error) {
	for _, p := range parts {
		if p != nil && p.command != nil {
			err = errors.Join(err, p.kill())
		}
	}
	return err
}

// isReady waits until an API server is ready, which requires that etcd is.
func isReady(ctx context.Context, config *rest.Config) error {
	prober, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			return prober.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the API server at %s: %w", config.Host, err)
	}
	return nil
}
