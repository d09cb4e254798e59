// Package measure has the shared parts of the benchmarks: processes and their CPU time, requests, watches, statistics.
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

var begun = time.Now()

// Main runs a benchmark with a temporary directory, until it returns or a signal interrupts it. If it fails, the exit
// code is 1.
func Main(name string, run func(ctx context.Context, work string) error) {
	ctrl.SetLogger(logr.Discard()) // that of envtest
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

// Log prints progress, with the seconds since the start.
func Log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
}

// BuildManager builds the manager of a tree as it is released.
func BuildManager(ctx context.Context, root, path string) error {
	return Run(ctx, root, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd")
}

// Run runs a command in a directory, without cgo.
func Run(ctx context.Context, directory, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = directory, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// Pause waits, or returns the cause if the context ends first.
func Pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}

// Follow calls handle for every object and every change until the context is canceled. It has no cache, so that it
// costs little beside the measured program. It reopens broken watches, so handle may be called again for an object.
func Follow(ctx context.Context, c client.WithWatch, list client.ObjectList,
	handle func(watch.EventType, client.Object), options ...client.ListOption) {
	for ctx.Err() == nil {
		changes, err := c.Watch(ctx, list, options...) // without a version: it begins with all objects, as added
		if err != nil {
			_ = Pause(ctx, 100*time.Millisecond)
			continue
		}
		for event := range changes.ResultChan() {
			if object, isObject := event.Object.(client.Object); isObject { // and not an error
				handle(event.Type, object)
			}
		}
		changes.Stop()
	}
}
