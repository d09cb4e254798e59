package main

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

// meter reads every now and then how much CPU time processes have taken.
type meter struct {
	mu      sync.Mutex
	samples []sample
	err     error
}

type sample struct {
	at      time.Time
	seconds map[string]float64 // since the process began
}

// startMeter reads the CPU times of processes until the context ends.
func startMeter(ctx context.Context, pids map[string]int) *meter {
	m := &meter{}
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

func (m *meter) read(pids map[string]int) {
	now := sample{at: time.Now(), seconds: map[string]float64{}}
	var failed error
	for name, pid := range pids {
		seconds, err := cpuSeconds(pid)
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

// cpuSeconds returns the CPU time of a process in user and kernel mode, from proc(5).
func cpuSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in parentheses and may have anything in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0, os.ErrProcessDone
	}
	user, userErr := strconv.ParseInt(fields[11], 10, 64)
	system, systemErr := strconv.ParseInt(fields[12], 10, 64)
	if userErr != nil || systemErr != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %s", pid, stat)
	}
	return float64(user+system) / clockTicks, nil
}

// between returns how many seconds of CPU time each process has taken between two times, and how long that was: from the last
// sample before the one to the first sample after the other.
func (m *meter) between(begin, end time.Time) (map[string]float64, time.Duration, error) {
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
