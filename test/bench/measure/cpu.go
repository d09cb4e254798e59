// Package measure is what comparisons of controllers share: processes and their CPU time, requests, and statistics.
package measure

import (
	"errors"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

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
	for name, pid := range pids {
		var err error
		r.of[name], err = CPUSeconds(pid)
		r.err = errors.Join(r.err, err)
	}
	busy, err := Busy()
	r.busy, r.err = busy, errors.Join(r.err, err)
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

// CPUSeconds returns the CPU time of a process so far, in user and kernel mode.
func CPUSeconds(pid int) (float64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
}

// Busy returns the CPU time so far of all that has run on the machine, and what its host has kept from it.
func Busy() (float64, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	all := stat.CPUTotal
	return all.User + all.Nice + all.System + all.IRQ + all.SoftIRQ + all.Steal, err
}

// Memory returns how much memory a process has in use, and the most that it ever had, in bytes.
func Memory(pid int) (now, most int64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := process.NewStatus()
	return int64(status.VmRSS), int64(status.VmHWM), err
}
