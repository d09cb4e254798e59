package measure

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Process is a running program. Unlike testenv.Manager it may be any program, runs without settings that find defects
// at the cost of CPU time, and writes its output to a file, so that the benchmark spends no CPU time copying it.
type Process struct {
	PID     int
	logPath string
	command *exec.Cmd
	ended   chan struct{} // closed when the process has terminated
}

// Start starts a program with only PATH from the developer's environment. Its output goes to a new file in a directory,
// which is also its HOME and TMPDIR.
func Start(directory string, environment []string, program string, args ...string) (*Process, error) {
	file, err := os.CreateTemp(directory, filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &Process{logPath: file.Name(), command: exec.Command(program, args...), ended: make(chan struct{})}
	p.command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + directory, "TMPDIR=" + directory},
		environment...)
	p.command.Stdout, p.command.Stderr = file, file
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	p.PID = p.command.Process.Pid
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// WaitUntil waits up to two minutes for a condition, which the clause describes, such as "it is ready". It fails if the
// process has terminated.
func (p *Process) WaitUntil(ctx context.Context, clause string, isTrue func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) { return isTrue(), p.CheckAlive() })
	if err != nil {
		return fmt.Errorf("waiting for %s until %s: %w", filepath.Base(p.command.Path), clause, err)
	}
	return nil
}

// Stop sends SIGTERM, and SIGKILL after 20 s, and waits until the process has terminated.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.Kill()
	}
}

// Kill sends SIGKILL, and waits until the process has terminated.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// CheckAlive returns an error, with the output, if the process has terminated.
func (p *Process) CheckAlive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the process has terminated: %s", p.output())
	default:
		return nil
	}
}

func (p *Process) output() string {
	output, _ := os.ReadFile(p.logPath)
	return string(output)
}

// Has returns a condition: the output of the process contains a text.
func (p *Process) Has(text string) func() bool {
	return func() bool { return strings.Contains(p.output(), text) }
}

// Answers returns a condition: a URL answers 200. The certificate is not verified.
func Answers(url string) func() bool {
	insecure := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	return func() bool {
		response, err := insecure.Get(url)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}

// Child returns the PID of the only child of this process that has a name, of which Linux keeps 15 characters. It finds
// programs that a library has started, such as etcd.
func Child(name string) (int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	var found []int
	for _, process := range processes {
		stat, err := process.Stat()
		if err == nil && stat.PPID == os.Getpid() && stat.Comm == name && stat.State != "Z" {
			found = append(found, process.PID)
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("found %d child processes named %s, want 1", len(found), name)
	}
	return found[0], nil
}
