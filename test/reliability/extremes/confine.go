package extremes

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// confine limits the memory of a process as that of a container is limited, by a cgroup. It returns a function that
// removes the cgroup after the end of the process; nil if this user or this machine cannot make one.
func confine(pid int, limit int64) (remove func() error) {
	for _, version := range []struct{ root, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},
	} {
		group, err := os.MkdirTemp(version.root, "extremes-")
		if err != nil {
			continue
		}
		err = set(filepath.Join(group, version.limit), limit)
		if err == nil {
			err = set(filepath.Join(group, "cgroup.procs"), int64(pid))
		}
		if err == nil {
			return func() error { return removeSoon(group) }
		}
		_ = os.Remove(group)
	}
	return nil
}

// set writes to a file that exists.
func set(path string, value int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, file.Close())
}

// removeSoon removes a cgroup, which takes a moment after its process was killed.
func removeSoon(group string) (err error) {
	for range 50 {
		if err = os.Remove(group); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
