//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/memcached-operator/test/cluster/progress"
)

// startupTime is the time a part has to become ready; on a busy machine with two cores it takes seconds.
const startupTime = 2 * time.Minute

// fingerprintVariable is set in the environment of every part, to a hash of what it was started from.
const fingerprintVariable = "MEMCACHED_OPERATOR_FINGERPRINT"

// part is a process of the cluster. It outlives the process that starts it.
type part struct {
	name string
	// command is the path of the program and its arguments. The process is found by it.
	command []string
	// path is the PATH of the process; by default the programs of the cluster and of the machine.
	path string
	// files are read by the process when it starts; when their content changes, it is restarted.
	files []string
	// prepare, if set, is called before the process is started.
	prepare func(ctx context.Context) error
	ready   func(ctx context.Context) error

	dir, log string
}

// start starts a part that does not run, restarts one that has changed, and waits until it is ready.
func (c *cluster) start(ctx context.Context, p *part) error {
	fingerprint, err := p.fingerprint()
	if err != nil {
		return err
	}
	began := time.Now()
	_, current := p.process()
	if current != fingerprint {
		if err := c.stopParts(ctx, p); err != nil {
			return err
		}
		if p.prepare != nil {
			if err := p.prepare(ctx); err != nil {
				return fmt.Errorf("preparing %s: %w", p.name, err)
			}
		}
		if err := p.launch(ctx, fingerprint); err != nil {
			return fmt.Errorf("starting %s: %w", p.name, err)
		}
	}
	if err := p.await(ctx, p.ready); err != nil {
		return err
	}
	if current != fingerprint {
		progress.Printf("%s is ready (%.1f s)", p.name, time.Since(began).Seconds())
	}
	return nil
}

// await calls ready until it succeeds. It fails when the process terminates or the time is up.
func (p *part) await(ctx context.Context, ready func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	err := poll(limited, func() error {
		if err := p.check(); err != nil {
			cancel()
			return err
		}
		attempt, cancel := context.WithTimeout(limited, 5*time.Second)
		defer cancel()
		return ready(attempt)
	})
	if err != nil {
		lines, _ := command(ctx, "tail", "--lines=15", p.log)
		return fmt.Errorf("%s is not ready: %w\nThe last lines of %s:\n%s", p.name, err, p.log, lines)
	}
	return nil
}

// launch starts the process in its own session, so that it receives no signals of the terminal.
func (p *part) launch(ctx context.Context, fingerprint string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	path := p.path
	if path == "" {
		path = filepath.Dir(p.command[0]) + ":" + systemPath
	}
	process := exec.Command(p.command[0], p.command[1:]...)
	process.Dir = p.dir
	process.Stdout, process.Stderr = log, log
	process.Env = []string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "PATH=" + path, fingerprintVariable + "=" + fingerprint}
	process.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return err
	}
	go func() { _ = process.Wait() }() // reaps it while this process lives; later, init does
	// The kernel shows its command line shortly after exec.
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = poll(limited, p.check)
	return nil
}

// stopParts stops parts, one after the other, and returns when they have terminated.
func (c *cluster) stopParts(ctx context.Context, parts ...*part) error {
	for _, p := range parts {
		if !p.running() {
			continue
		}
		began, how := time.Now(), "stopped"
		err := p.end(ctx, unix.SIGTERM)
		if err != nil && ctx.Err() == nil {
			how = "killed"
			err = p.end(ctx, unix.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("stopping %s: %w", p.name, err)
		}
		progress.Printf("%s %s (%.1f s)", p.name, how, time.Since(began).Seconds())
	}
	return nil
}

// end signals the process and waits some seconds until it has terminated.
func (p *part) end(ctx context.Context, signal unix.Signal) error {
	pid, _ := p.process()
	if pid == 0 {
		return nil
	}
	_ = unix.Kill(pid, signal)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return poll(ctx, func() error {
		if p.running() {
			return fmt.Errorf("process %d has not terminated", pid)
		}
		return nil
	})
}

// process finds the process of the part by its command line. It returns 0 if the part does not run.
func (p *part) process() (pid int, fingerprint string) {
	line := strings.Join(p.command, "\x00") + "\x00"
	for pid, other := range processes() {
		// A child that has not called exec yet has the same command line, but does not lead a session.
		if session, _ := unix.Getsid(pid); other != line || session != pid {
			continue
		}
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for variable := range strings.SplitSeq(string(environment), "\x00") {
			if value, ok := strings.CutPrefix(variable, fingerprintVariable+"="); ok {
				return pid, value
			}
		}
		return pid, ""
	}
	return 0, ""
}

func (p *part) running() bool {
	pid, _ := p.process()
	return pid != 0
}

// check fails if the part does not run.
func (p *part) check() error {
	if !p.running() {
		return errors.New("the process has terminated")
	}
	return nil
}

// processes returns the command lines of all other processes by process ID, with a zero byte after each argument. A
// process that has terminated, but is not reaped yet, has none.
func processes() map[int]string {
	lines := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if content, err := os.ReadFile(file); err == nil && len(content) > 0 {
			lines[pid] = string(content)
		}
	}
	return lines
}

// fingerprint returns a hash of the program, its arguments and the files it reads.
func (p *part) fingerprint() (string, error) {
	hash := sha256.New()
	info, err := os.Stat(p.command[0])
	if err != nil {
		return "", fmt.Errorf("%s is not built: %w", p.name, err)
	}
	hash.Write(fmt.Appendln(nil, p.command, info.ModTime().UnixNano(), info.Size()))
	for _, file := range p.files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
