package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// What the users of a cache do: enough requests to notice a second without a node, few enough for many caches at once.
const (
	usersKeys     = 600 // few enough that all of them are read within half a minute
	usersWorkers  = 32
	usersPause    = 64 * time.Millisecond // of a worker, between requests: 500 requests a second in all
	usersTimeout  = 500 * time.Millisecond
	usersAvoid    = time.Second     // a server is avoided so long after an error, as in many clients
	usersLookup   = 5 * time.Second // between lookups of the servers; an error causes one at once
	usersInterval = 200 * time.Millisecond
)

// interval is what happened to the requests of an interval. rollout_test.go reads it.
type interval struct {
	Ended                time.Time
	Hits, Misses, Errors int
	// Silent is how long all requests to one server have failed, the longest of those that ended, or are, in the interval.
	Silent time.Duration
}

// users read keys, some more often than others, from the servers of a service for ever, and store those that are
// missing. A key belongs to the server whose hash with the key is the highest. Servers are known by the names in the
// SRV records of a port of a service: that of a pod, or, where pods have none, its address.
type users struct {
	port, service string
	tls           *tls.Config // nil for plaintext

	mu      sync.Mutex
	servers []string
	failing map[string]time.Time // since when all requests to a server fail
	failed  map[string]time.Time // when a request to a server failed
	now     interval
	wanted  chan struct{} // asks for a lookup
}

// useCache takes the port, the service, and for TLS the directory of a CA and the name of the servers.
func useCache(args []string) error {
	u := &users{port: args[0], service: args[1], failing: map[string]time.Time{},
		failed: map[string]time.Time{}, wanted: make(chan struct{}, 1)}
	if len(args) > 2 {
		i, err := readIdentities(args[2])
		if err != nil {
			return err
		}
		u.tls = &tls.Config{RootCAs: i.ca, ServerName: args[3], MinVersion: tls.VersionTLS12}
	}
	if err := u.lookUp(); err != nil {
		return err
	}
	for key := range uint64(usersKeys) {
		if err := u.newWorker().read(key); err != nil {
			return err
		}
	}
	u.now = interval{}
	fmt.Println("filled")
	for seed := range uint64(usersWorkers) {
		go u.newWorker().run(rand.New(rand.NewPCG(seed, 1)))
	}
	go func() {
		for {
			select {
			case <-u.wanted:
			case <-time.After(usersLookup):
			}
			_ = u.lookUp() // a service without servers keeps the last ones
			time.Sleep(usersInterval)
		}
	}()
	for {
		time.Sleep(usersInterval)
		line, err := json.Marshal(u.take())
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
}

// lookUp finds the servers.
func (u *users) lookUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, records, err := net.DefaultResolver.LookupSRV(ctx, u.port, "tcp", u.service)
	if err != nil {
		return err
	}
	var found []string
	for _, record := range records {
		found = append(found, net.JoinHostPort(record.Target, fmt.Sprint(record.Port)))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.servers = found
	for server := range u.failing {
		if !slices.Contains(found, server) {
			delete(u.failing, server) // it is no longer asked
		}
	}
	return nil
}

// serverOf returns the server of a key: of those that have not just failed, if there are any.
func (u *users) serverOf(key string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	servers := slices.DeleteFunc(slices.Clone(u.servers), func(server string) bool {
		return time.Since(u.failed[server]) < usersAvoid
	})
	if len(servers) == 0 {
		servers = u.servers
	}
	return slices.MaxFunc(servers, func(a, b string) int { return cmp.Compare(hash(a+key), hash(b+key)) })
}

// count counts the answer of a server.
func (u *users) count(server string, isHit bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	since, isFailing := u.failing[server]
	switch {
	case err != nil:
		u.now.Errors++
		u.failed[server] = time.Now()
		if !isFailing {
			u.failing[server] = time.Now()
		}
		select {
		case u.wanted <- struct{}{}:
		default: // it is wanted already
		}
		return
	case isHit:
		u.now.Hits++
	default:
		u.now.Misses++
	}
	if isFailing {
		u.now.Silent = max(u.now.Silent, time.Since(since))
		delete(u.failing, server)
	}
}

// take returns what has happened since the last call.
func (u *users) take() interval {
	u.mu.Lock()
	defer u.mu.Unlock()
	taken := u.now
	taken.Ended = time.Now()
	for _, since := range u.failing {
		taken.Silent = max(taken.Silent, time.Since(since))
	}
	u.now = interval{}
	return taken
}

// worker is a client with a connection to each server.
type worker struct {
	*users
	connections map[string]*connection
}

type connection struct {
	net.Conn
	answers *bufio.Reader
}

func (u *users) newWorker() *worker {
	return &worker{users: u, connections: map[string]*connection{}}
}

// run reads keys: the chance of the next one is less than that of the one before, and that of the first one in 200.
func (w *worker) run(chance *rand.Rand) {
	keys := rand.NewZipf(chance, 1.1, 50, usersKeys-1)
	for ; ; time.Sleep(usersPause) {
		_ = w.read(keys.Uint64())
	}
}

// read reads a key, and stores it if it is missing.
func (w *worker) read(number uint64) error {
	key := fmt.Sprintf("users-%d", number)
	server := w.serverOf(key)
	answer, err := w.ask(server, fmt.Sprintf("get %s\r\n", key), "END")
	isHit := strings.HasPrefix(answer, "VALUE ")
	w.count(server, isHit, err)
	if err == nil && !isHit {
		_, err = w.ask(server, fmt.Sprintf("set %s 0 0 100\r\n%0100d\r\n", key, number), "STORED")
	}
	return err
}

// ask sends a request to a server and returns the lines of its answer, to the last one.
func (w *worker) ask(server, request, last string) (answer string, err error) {
	c := w.connections[server]
	if c == nil {
		opened, err := dialWithin(server, w.tls, usersTimeout)
		if err != nil {
			return "", err
		}
		c = &connection{opened, bufio.NewReader(opened)}
		w.connections[server] = c
	}
	defer func() {
		if err != nil {
			_ = c.Close()
			delete(w.connections, server)
		}
	}()
	_ = c.SetDeadline(time.Now().Add(usersTimeout))
	if _, err := io.WriteString(c, request); err != nil {
		return "", err
	}
	for {
		line, err := c.answers.ReadString('\n')
		if err != nil {
			return "", err
		}
		answer += line
		switch strings.TrimSpace(line) {
		case last:
			return answer, nil
		case "ERROR", "SERVER_ERROR", "NOT_STORED":
			return "", fmt.Errorf("%s answers %q", server, line)
		}
	}
}
