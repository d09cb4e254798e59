// Command pause keeps the namespaces of a pod open until it is terminated.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	// In a pod with a shared process namespace it inherits orphans, which the kernel reaps because of this.
	signal.Ignore(syscall.SIGCHLD)
	<-end
}
