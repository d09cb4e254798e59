// Package measure is what comparisons of controllers have in common: processes and their CPU time, requests, and what many
// measurements come to.
package measure

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clockTicks is how many of the kernel's clock ticks there are in a second of CPU time, on every Linux of today.
const clockTicks = 100

// Meter reads every now and then how much CPU time processes have taken.
type Meter struct {
	mu      sync.Mutex
	samples []sample
	err     error
}

type sample struct {
	at      time.Time
	seconds map[string]float64 // since the process began
}

// StartMeter reads the CPU times of named processes until the context ends.
func StartMeter(ctx context.Context, pids map[string]int) *Meter {
	m := &Meter{}
	m.read(pids)
	go func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				m.read(pids)
			}
		}
	}()
	return m
}

func (m *Meter) read(pids map[string]int) {
	now := sample{at: time.Now(), seconds: map[string]float64{}}
	var failed error
	for name, pid := range pids {
		seconds, err := CPUSeconds(pid)
		if err != nil {
			failed = fmt.Errorf("the CPU time of %s: %w", name, err)
		}
		now.seconds[name] = seconds
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if failed != nil {
		m.err = failed
		return
	}
	m.samples = append(m.samples, now)
}

// Fields of /proc/PID/stat after the program's name, from proc(5).
const (
	parentField = 1
	userField   = 11
	systemField = 12
)

// stat returns those fields.
func stat(pid int) ([]string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The name stands in parentheses and may have anything in it.
	fields := strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))
	if len(fields) <= systemField {
		return nil, os.ErrProcessDone
	}
	return fields, nil
}

// CPUSeconds returns the CPU time of a process so far, in user and kernel mode.
func CPUSeconds(pid int) (float64, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return ticks(fields[userField], fields[systemField])
}

// Busy returns the CPU time so far of all that has run on the machine, and what its host has kept from it.
func Busy() (float64, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(content), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	if len(fields) < 9 {
		return 0, fmt.Errorf("/proc/stat: %s", line)
	}
	return ticks(fields[1], fields[2], fields[3], fields[6], fields[7], fields[8])
}

// ticks adds up numbers of clock ticks and returns seconds.
func ticks(numbers ...string) (float64, error) {
	sum := 0.0
	for _, number := range numbers {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("clock ticks: %w", err)
		}
		sum += float64(n)
	}
	return sum / clockTicks, nil
}

// Memory returns how much memory a process has in use, and the most that it ever had, in bytes.
func Memory(pid int) (now, most int64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/status: %w", pid, err)
		}
		values[name] = kilobytes * 1024
	}
	return values["VmRSS"], values["VmHWM"], nil
}

// Between returns how many seconds of CPU time each process has taken between two times, and how long that was: from the last
// sample before the one to the first sample after the other.
func (m *Meter) Between(begin, end time.Time) (map[string]float64, time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, 0, m.err
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	for _, s := range m.samples {
		if !s.at.After(begin) {
			first = s
		}
		if !s.at.Before(end) {
			last = s
			break
		}
	}
	taken := map[string]float64{}
	for name := range last.seconds {
		taken[name] = last.seconds[name] - first.seconds[name]
	}
	return taken, last.at.Sub(first.at), nil
}
