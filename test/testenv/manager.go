package testenv

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Manager is a running manager process.
type Manager struct {
	// MetricsURL is the URL of its metrics.
	MetricsURL string
	// ProbeURL is the base URL of /healthz and /readyz.
	ProbeURL string

	process *exec.Cmd
	logs    Buffer
	ended   chan struct{} // closed when the process has terminated
	err     error         // the error of the process; nil for exit code 0
}

// Run starts a manager program with more environment ("NAME=value") and flags.
func Run(program string, environment, flags []string) (*Manager, error) {
	m := &Manager{process: exec.Command(program, flags...), ended: make(chan struct{})}
	m.process.Env = append(Environment(), environment...)
	m.process.Stdout, m.process.Stderr = &m.logs, &m.logs
	if err := m.process.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	go func() {
		m.err = m.process.Wait()
		close(m.ended)
	}()
	return m, nil
}

// StartManager starts a manager program with the operator's own service account, and with more environment
// ("NAME=value") and flags if given.
func (cp *ControlPlane) StartManager(ctx context.Context, program string, environment []string,
	flags ...string) (*Manager, error) {
	kubeconfig, err := cp.Kubeconfig(ctx, OperatorNamespace, OperatorServiceAccount)
	if err != nil {
		return nil, err
	}
	addresses := FreeAddresses(2)
	metrics, probes := addresses[0], addresses[1]
	m, err := Run(program, environment, append([]string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect", "--leader-election-namespace=" + OperatorNamespace,
		"--metrics-bind-address=" + metrics,
		"--health-probe-bind-address=" + probes,
		"--image-delay=0s", // tests do not wait for it, but those that give another one
	}, flags...))
	if err != nil {
		return nil, err
	}
	m.MetricsURL, m.ProbeURL = "https://"+metrics+"/metrics", "http://"+probes
	return m, nil
}

// Environment returns the environment that managers are tested in.
func Environment() []string {
	return append(slices.DeleteFunc(os.Environ(), affectsManager),
		"GORACE=atexit_sleep_ms=10", // by default a program with the race detector takes a second to end
		"GOTRACEBACK=all",
		"KUBE_CACHE_MUTATION_DETECTOR=true")
}

// affectsManager reports whether a variable of the developer's environment would change the manager's behavior.
func affectsManager(variable string) bool {
	return strings.HasPrefix(variable, "WATCH_NAMESPACE=") || strings.HasPrefix(variable, "RELATED_IMAGE_") ||
		strings.HasPrefix(variable, "IMAGE_TAGS=") || strings.HasPrefix(variable, "POD_UID=") ||
		strings.HasPrefix(variable, "KUBE_") || strings.HasPrefix(variable, "GORACE=")
}

// WaitUntilReady waits until the manager is ready.
func (m *Manager) WaitUntilReady(ctx context.Context) error {
	return until(ctx, "the manager is ready", func(context.Context) (bool, error) {
		select {
		case <-m.ended:
			return false, fmt.Errorf("it has terminated: %w\n%s", m.err, m.Logs())
		default:
		}
		response, err := http.Get(m.ProbeURL + "/readyz")
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// Stop stops the manager as Kubernetes does and returns the error of the process: nil for exit code 0.
func (m *Manager) Stop() error {
	return m.Signal(syscall.SIGTERM)
}

// Kill kills the manager.
func (m *Manager) Kill() {
	_ = m.Signal(syscall.SIGKILL)
}

// Send sends a signal to the manager.
func (m *Manager) Send(signal os.Signal) {
	_ = m.process.Process.Signal(signal)
}

// Wait waits until the manager has terminated, and returns its error: nil for exit code 0.
func (m *Manager) Wait() error {
	<-m.ended
	return m.err
}

// Signal sends a signal to the manager and waits until it has terminated.
func (m *Manager) Signal(signal os.Signal) error {
	m.Send(signal)
	select {
	case <-m.ended:
		return m.err
	case <-time.After(time.Minute):
		return fmt.Errorf("the manager does not exit within a minute of %s", signal)
	}
}

// Logs returns what the manager has logged so far.
func (m *Manager) Logs() string {
	return m.logs.String()
}

// metricsClient keeps its connections: a TLS handshake for each scrape takes CPU time. Certificates are self-signed.
var metricsClient = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// Scrape reads the metrics with a token and returns the status code and the body.
func (m *Manager) Scrape(token string) (int, string, error) {
	request, err := http.NewRequest(http.MethodGet, m.MetricsURL, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := metricsClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// Passes returns the number of passes of a controller, from the metrics.
func (m *Manager) Passes(token, controller string) (int, error) {
	_, body, err := m.Scrape(token)
	if err != nil {
		return 0, err
	}
	passes := 0
	for _, match := range regexp.MustCompile(`controller_runtime_reconcile_total\{controller="`+controller+
		`",result="[a-z_]+"\} ([0-9.e+]+)`).FindAllStringSubmatch(body, -1) {
		n, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return 0, err
		}
		passes += int(n)
	}
	return passes, nil
}

// LogPasses is the flag that makes a manager log the beginning and the end of each pass.
const LogPasses = "--log-level=DEBUG-1"

// PassesIn returns how many passes for objects in a namespace a controller has completed. The manager must have been
// started with the flag [LogPasses].
func (m *Manager) PassesIn(namespace, controller string) int {
	return m.logs.count(`"msg":"Reconcile`, `"controller":"`+controller+`"`, `"namespace":"`+namespace+`"`)
}

// Buffer keeps what a process writes. It is safe for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// count returns the number of lines that contain all of the texts. The rarest text should be the first.
func (b *Buffer) count(texts ...string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range bytes.Lines(b.data.Bytes()) {
		contains := func(text string) bool { return bytes.Contains(line, []byte(text)) }
		if !slices.ContainsFunc(texts, func(text string) bool { return !contains(text) }) {
			n++
		}
	}
	return n
}

// Last returns the last 4,000 bytes.
func (b *Buffer) Last() string {
	text := b.String()
	return text[max(0, len(text)-4000):]
}

// PID returns the process ID.
func (m *Manager) PID() int {
	return m.process.Process.Pid
}
