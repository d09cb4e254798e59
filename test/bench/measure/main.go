package measure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

var begun = time.Now()

// Main runs a benchmark until it ends or a signal interrupts it. If it fails, the exit code is 1.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
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

// Go runs the go command and returns its output.
func Go(ctx context.Context, directory string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = directory
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return string(out), nil
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
