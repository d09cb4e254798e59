package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// profileSeconds is how long a profile is taken, from when something begins to be measured.
const profileSeconds = 10

// profile takes CPU profiles of the API server, and of a controller that serves them, if profiles are wanted, and returns how to wait for
// their end.
func (p *plane) profile(a arm, c *controller) (wait func()) {
	b := p.bench
	if b.profiles == "" {
		return func() {}
	}
	admin, err := rest.HTTPClientFor(p.Config)
	if err != nil {
		b.say("  no profile: %v", err)
		return func() {}
	}
	name := fmt.Sprintf("%d-%s", b.started, strings.ReplaceAll(strings.ReplaceAll(a.name, " ", "-"), ",", ""))
	var taking sync.WaitGroup
	take := func(from *http.Client, server, of string) {
		taking.Go(func() {
			if err := saveProfile(from, server, filepath.Join(b.profiles, name+"-"+of+".pprof")); err != nil {
				b.say("  no profile of the %s: %v", of, err)
			}
		})
	}
	take(admin, p.Config.Host, apiServer)
	if c.profiles != "" {
		take(http.DefaultClient, c.profiles, controllerProcess)
	}
	return taking.Wait
}

// saveProfile saves a CPU profile of a server, which it takes profileSeconds for.
func saveProfile(from *http.Client, server, path string) error {
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", strings.TrimSuffix(server, "/"), profileSeconds)
	response, err := from.Get(url)
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
