package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profileSeconds is how long a profile is taken, from when something begins to be measured.
const profileSeconds = 10

// profile takes a CPU profile of a controller that serves them, if profiles are wanted, and returns how to wait for its end.
func (b *bench) profile(c *controller) (wait func()) {
	if b.profiles == "" || c.profiles == "" {
		return func() {}
	}
	done := make(chan error, 1)
	path := filepath.Join(b.profiles, fmt.Sprintf("%s-%d.pprof", managerProgram, b.started))
	go func() {
		done <- save(fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", c.profiles, profileSeconds), path)
	}()
	return func() {
		if err := <-done; err != nil {
			b.say("  no profile: %v", err)
		}
	}
}

// save saves what a URL answers.
func save(url, path string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return os.WriteFile(path, content, 0o644)
}
