package measure

import (
	"errors"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// Usage is the CPU time, in seconds, that processes and the whole machine have used so far.
type Usage struct {
	at        time.Time
	processes map[string]float64
	machine   float64
}

// ReadUsage reads the CPU times of named processes, given by process ID.
func ReadUsage(pids map[string]int) (Usage, error) {
	u := Usage{at: time.Now(), processes: map[string]float64{}}
	var errs []error
	for name, pid := range pids {
		seconds, err := CPUSeconds(pid)
		u.processes[name], errs = seconds, append(errs, err)
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return u, err
	}
	stat, err := proc.Stat()
	all := stat.CPUTotal // steal is what the hypervisor withholds
	u.machine = all.User + all.Nice + all.System + all.IRQ + all.SoftIRQ + all.Steal
	return u, errors.Join(append(errs, err)...)
}

// Since returns the CPU seconds used by each process since an earlier reading, and the share of the machine that other
// processes used. All of a process that started in between counts.
func (u Usage) Since(before Usage) (cpu map[string]float64, others float64) {
	cpu = map[string]float64{}
	used := u.machine - before.machine
	for name, seconds := range u.processes {
		cpu[name] = seconds - before.processes[name]
		used -= cpu[name]
	}
	return cpu, max(0, used/(u.at.Sub(before.at).Seconds()*float64(runtime.NumCPU())))
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

// Memory returns how much memory a process uses, and the most that it has ever used, in bytes.
func Memory(pid int) (now, most uint64, err error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	status, err := process.NewStatus()
	return status.VmRSS, status.VmHWM, err
}
