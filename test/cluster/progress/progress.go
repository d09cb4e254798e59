// Package progress prints progress with the time since the program started, or since BEGAN (seconds since 1970) if the
// environment has it.
package progress

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

var start = time.Now()

func init() {
	if seconds, err := strconv.ParseInt(os.Getenv("BEGAN"), 10, 64); err == nil {
		start = time.Unix(seconds, 0)
	}
}

// Printf prints a line.
func Printf(format string, args ...any) {
	fmt.Printf("[%5.1fs] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
}
