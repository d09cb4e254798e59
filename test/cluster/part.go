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
	"syscall"
	"time"
)

// startupTime is how long a part may take until it is ready; a busy machine with two cores takes seconds.
const startupTime = 2 * time.Minute

// part is a process of the cluster. It outlives the process that starts it.
type part struct {
	name string
	// command is the program, a path, and its arguments.
	command []string
	// path is the PATH it finds other programs by, empty for the machine's and the cluster's.
	path string
	// files are what it reads at its start; another content means another start.
	files []string
	// prepare, if there is one, is called before the start.
	prepare func(ctx context.Context) error
	ready   func(ctx context.Context) error

	dir string // where its record is kept: process ID, when that process began, and a hash of what was started
	log string
}

// start starts a part that does not run, or that would be started otherwise now, and waits until it is ready.
func (c *cluster) start(ctx context.Context, p *part) error {
	fingerprint, err := p.fingerprint()
	if err != nil {
		return err
	}
	fresh := false
	if record := p.record(); !record.runs() || record.fingerprint != fingerprint {
		if err := c.stopParts(ctx, p); err != nil {
			return err
		}
		if p.prepare != nil {
			if err := p.prepare(ctx); err != nil {
				return fmt.Errorf("preparing %s: %w", p.name, err)
			}
		}
		if err := p.launch(fingerprint); err != nil {
			return fmt.Errorf("starting %s: %w", p.name, err)
		}
		fresh = true
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startupTime)
	defer cancel()
	err = poll(ctx, func() error {
		if !p.running() {
			cancel() // it will not become ready any more
			return errors.New("it has ended")
		}
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return p.ready(attempt)
	})
	if err != nil {
		return fmt.Errorf("%s is not ready: %w\nThe last lines of %s:\n%s", p.name, err, p.log, lastLines(p.log, 15))
	}
	if fresh {
		c.clock.Say("%s is ready (%.1f s)", p.name, time.Since(began).Seconds())
	}
	return nil
}

// launch starts the process, in a session of its own so that no signal for this one reaches it.
func (p *part) launch(fingerprint string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	path := p.path
	if path == "" {
		path = filepath.Dir(p.command[0]) + ":" + systemPath
	}
	command := exec.Command(p.command[0], p.command[1:]...)
	command.Dir = p.dir
	command.Stdout, command.Stderr = log, log
	command.Env = []string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "PATH=" + path}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	// Collected when it ends while this process lives, else by init.
	go func() { _ = command.Wait() }()
	began, err := startTime(command.Process.Pid)
	if err != nil {
		return fmt.Errorf("it ended at once; the last lines of %s:\n%s", p.log, lastLines(p.log, 15))
	}
	return writeFile(p.recordPath(), fmt.Appendf(nil, "%d %s %s\n", command.Process.Pid, began, fingerprint), 0o600)
}

// stopParts stops parts, one after the other, and returns when they have ended.
func (c *cluster) stopParts(ctx context.Context, parts ...*part) error {
	for _, p := range parts {
		record := p.record()
		if !record.runs() {
			continue
		}
		began, how := time.Now(), "stopped"
		err := record.end(ctx, syscall.SIGTERM)
		if err != nil && ctx.Err() == nil {
			how = "killed"
			err = record.end(ctx, syscall.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("stopping %s: %w", p.name, err)
		}
		c.clock.Say("%s %s (%.1f s)", p.name, how, time.Since(began).Seconds())
	}
	return nil
}

// end signals the process and waits some seconds until it has ended.
func (r record) end(ctx context.Context, signal syscall.Signal) error {
	_ = syscall.Kill(r.pid, signal)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return poll(ctx, func() error {
		if r.runs() {
			return errors.New("it runs on")
		}
		return nil
	})
}

// record is what is known of the process of a part.
type record struct {
	pid         int
	began       string
	fingerprint string
}

func (p *part) recordPath() string {
	return filepath.Join(p.dir, p.name+".pid")
}

// record reads the record, and looks for the process if there is none: it, or the process that started it, may have
// been killed or deleted in between.
func (p *part) record() record {
	var r record
	content, err := os.ReadFile(p.recordPath())
	if err == nil {
		_, err = fmt.Sscan(string(content), &r.pid, &r.began, &r.fingerprint)
	}
	if err == nil && r.runs() {
		return r
	}
	line := strings.Join(p.command, "\x00") + "\x00"
	for _, pid := range processes() {
		if content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && string(content) == line {
			if began, err := startTime(pid); err == nil {
				return record{pid: pid, began: began}
			}
		}
	}
	return record{}
}

// runs says whether the process runs. Process IDs are used again; with the time of its start it is the same process.
func (r record) runs() bool {
	if r.pid == 0 {
		return false
	}
	began, err := startTime(r.pid)
	return err == nil && began == r.began
}

func (p *part) running() bool {
	return p.record().runs()
}

func (p *part) pid() string {
	if r := p.record(); r.runs() {
		return strconv.Itoa(r.pid)
	}
	return "-"
}

// startTime is when a process began, in clock ticks since the boot, from proc(5). A process that has ended and was not
// yet collected has none.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in parentheses and may have anything in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return "", os.ErrProcessDone
	}
	return fields[19], nil
}

// fingerprint is a hash of the program, its arguments and the files it reads.
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

// lastLines are the last n lines of a file, shortened where they are long.
func lastLines(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		if len(line) > 300 {
			line = line[:300] + "…"
		}
		lines[i] = "  " + line
	}
	return strings.Join(lines, "\n")
}
