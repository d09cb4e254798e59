// Package measure is what comparisons of controllers share: processes and their CPU time, requests, and statistics.
package measure

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// clockTicks is the number of kernel clock ticks in a second of CPU time, on every Linux architecture that Go supports.
const clockTicks = 100

// Reading is the CPU time that processes have used up to a time.
type Reading struct {
	at   time.Time
	of   map[string]float64 // by process
	busy float64            // of all processes
	err  error
}

// Cost is the CPU time used between two readings.
type Cost struct {
	// CPU is the CPU time in seconds, by process.
	CPU map[string]float64 `json:"cpuSeconds"`
	// Machine is the CPU time that the machine had, in seconds.
	Machine float64 `json:"machineSeconds"`
	// Others is the share of it that other processes used or the hypervisor withheld.
	Others float64 `json:"others"`
}

// ReadCPU reads the CPU times of named processes, given by process ID.
func ReadCPU(pids map[string]int) Reading {
	r := Reading{at: time.Now(), of: map[string]float64{}}
	errs := make([]error, 0, len(pids)+1)
	for name, pid := range pids {
		seconds, err := CPUSeconds(pid)
		r.of[name], errs = seconds, append(errs, err)
	}
	busy, err := Busy()
	r.busy, r.err = busy, errors.Join(append(errs, err)...)
	return r
}

// Until returns what was used between two readings. The whole CPU time of a process that started in between counts.
func (r Reading) Until(later Reading) (Cost, error) {
	seconds := later.at.Sub(r.at).Seconds()
	cost, named := Cost{CPU: map[string]float64{}, Machine: seconds * float64(runtime.NumCPU())}, 0.0
	for name := range later.of {
		cost.CPU[name] = later.of[name] - r.of[name]
		named += cost.CPU[name]
	}
	cost.Others = max(0, (later.busy-r.busy-named)/cost.Machine)
	return cost, errors.Join(r.err, later.err)
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
