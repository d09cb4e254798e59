// Package measure has what the benchmarks share: running programs, reading their CPU time, counting API requests,
// watching objects, and statistics.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var startTime = time.Now()

// Main calls run with a temporary directory, which it removes when run returns. SIGINT and SIGTERM cancel the context
// of run. If run fails, Main prints the error and exits with code 1.
func Main(name string, run func(ctx context.Context, work string) error) {
	ctrl.SetLogger(logr.Discard()) // silences controller-runtime's warning that no logger is set
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	work, err := os.MkdirTemp("", name+"-")
	if err == nil {
		err = errors.Join(run(ctx, work), os.RemoveAll(work))
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Log prints progress to stderr, with the seconds since the program started.
func Log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(startTime).Seconds(), fmt.Sprintf(format, args...))
}

// BuildManager builds the manager from the source code in root, as the Dockerfile does, but without setting its
// version.
func BuildManager(ctx context.Context, root, path string) error {
	return Run(ctx, root, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd")
}

// Run runs a command in a directory. It disables cgo for builds, as the Dockerfile does. An error includes the output.
func Run(ctx context.Context, directory, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = directory, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Pause waits for a duration, or returns context.Cause(ctx) if the context ends first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Follow watches the objects of the list's kind until the context is canceled, and calls handle for each event. It uses
// no informer, to leave the CPU to the measured program. When a watch closes, Follow opens another, which reports all
// existing objects as added again, but no deletions in between.
func Follow(ctx context.Context, c client.WithWatch, list client.ObjectList,
	handle func(watch.EventType, client.Object), options ...client.ListOption) {
	for ctx.Err() == nil {
		watcher, err := c.Watch(ctx, list, options...) // no resourceVersion: first an Added event for each object
		if err != nil {
			_ = Pause(ctx, 100*time.Millisecond)
			continue
		}
		for event := range watcher.ResultChan() {
			if object, ok := event.Object.(client.Object); ok { // an Error event has a metav1.Status instead
				handle(event.Type, object)
			}
		}
		watcher.Stop()
	}
}
