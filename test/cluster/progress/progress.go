// Package progress tells how far a program is, with the time since the beginning of the work.
package progress

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Clock counts from the beginning of the work.
type Clock struct{ began time.Time }

// Start starts a clock. Within a longer work, whose beginning the environment has in BEGAN (seconds since 1970), it
// counts from there.
func Start() Clock {
	if seconds, err := strconv.ParseInt(os.Getenv("BEGAN"), 10, 64); err == nil {
		return Clock{time.Unix(seconds, 0)}
	}
	return Clock{time.Now()}
}

// Say prints a line.
func (c Clock) Say(format string, args ...any) {
	fmt.Printf("[%5.1fs] %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}
