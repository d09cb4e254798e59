// Command pause holds the namespaces of a pod open until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	// As the first process of a pod that shares its process namespace it inherits orphans; this has the kernel reap them.
	signal.Ignore(syscall.SIGCHLD)
	<-end
}
