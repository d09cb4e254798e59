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

// Process is a running program. Unlike testenv.Manager it may be any program, runs without what finds defects at the
// cost of CPU time, and logs to a file, so that this process spends no CPU time on its log.
type Process struct {
	PID     int
	log     string // a file
	command *exec.Cmd
	ended   chan struct{} // closed when the process has terminated
}

// Start starts a program with none of the developer's environment. Its output goes to a new file in a directory, which
// is also its home.
func Start(directory string, environment []string, program string, args ...string) (*Process, error) {
	file, err := os.CreateTemp(directory, filepath.Base(program)+"-*.log")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &Process{log: file.Name(), command: exec.Command(program, args...), ended: make(chan struct{})}
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

// WaitUntil waits up to two minutes for a condition, and fails if the process ends before.
func (p *Process) WaitUntil(ctx context.Context, what string, isTrue func() bool) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) { return isTrue(), p.Alive() })
	if err != nil {
		return fmt.Errorf("waiting for %s until %s: %w", filepath.Base(p.command.Path), what, err)
	}
	return nil
}

// Stop stops the process as Kubernetes does, and waits until it has terminated.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// Alive fails if the process has terminated.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the process has terminated: %s", p.output())
	default:
		return nil
	}
}

func (p *Process) output() string {
	output, _ := os.ReadFile(p.log)
	return string(output)
}

// Has returns a condition: the process has printed a text.
func (p *Process) Has(text string) func() bool {
	return func() bool { return strings.Contains(p.output(), text) }
}

// Answers returns a condition: a URL answers 200, with any certificate.
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

// Child returns the ID of the one running child process of this process with a name.
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
		return 0, fmt.Errorf("there are %d child processes %s", len(found), name)
	}
	return found[0], nil
}
