// Command probe is a client of operands and operators in a pod of the end-to-end tests. It prints the responses, and
// exits with 1 if one is wrong.
//
//	probe memcached SERVICE    stores and reads a value at each node in the SRV records of SERVICE; prints their versions
//	probe settings NODE        prints the settings of a memcached node, one on a line, and its answer to "watch"
//	probe fill NODE MIB        stores so many MiB of items at a memcached node, or until it breaks the connection
//	probe ring SERVER...       stores keys at servers chosen by hashing names; reads them until one server was away and
//	                           is back; prints the hits, misses and errors of each
//	probe load NODE            stores and reads items at a node, for ever; some of them are missing
//	probe http URL...          prints the status of each response
//	probe metrics URL [TOKEN]  prints the status and the number of metrics; TOKEN is a file with a bearer token
//	probe tls DIR NAME NODE    prints what a node with this name answers to clients with and without certificates of DIR
//	probe follow DIR NAME@NODE...   prints the certificates that nodes serve when they change, and errors, for ever
//	probe move DIR SERVICE COUNT    asks the nodes of SERVICE, over TLS when COUNT of them offer it, until all do
//	probe fetch WORD URL...    prints the lines that begin with WORD
//	probe users PORT SERVICE [DIR NAME]   reads keys from the nodes of a port of SERVICE, over TLS with the CA in DIR,
//	                           and stores those that are missing; prints what happened, for ever
//	probe crash                crashes process 1
package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const timeout = 10 * time.Second

// commands have the fewest and the most arguments that each takes.
var commands = map[string]struct {
	fewest, most int
	run          func(args []string) error
}{
	"memcached": {1, 1, func(args []string) error { return memcached(args[0]) }},
	"settings":  {1, 1, func(args []string) error { return settings(args[0]) }},
	"fill":      {2, 2, func(args []string) error { return fill(args[0], args[1]) }},
	"ring":      {1, 100, ring},
	"load":      {1, 1, func(args []string) error { return load(args[0]) }},
	"http":      {1, 100, get},
	"metrics":   {1, 2, func(args []string) error { return metrics(args[0], args[1:]) }},
	"tls":       {3, 3, func(args []string) error { return tlsClients(args[0], args[1], args[2]) }},
	"follow":    {2, 100, follow},
	"move":      {3, 3, func(args []string) error { return move(args[0], args[1], args[2]) }},
	"fetch":     {2, 100, func(args []string) error { return fetch(args[0], args[1:]) }},
	"users":     {2, 4, useCache},
	"crash":     {0, 0, func([]string) error { return syscall.Kill(1, syscall.SIGQUIT) }},
}

func main() {
	args := slices.Concat(os.Args[1:], []string{""})
	command, isKnown := commands[args[0]]
	args = args[1:max(len(args)-1, 1)]
	err := errors.New("usage: probe memcached SERVICE | settings NODE | fill NODE MIB | ring SERVER... | load NODE | " +
		"http URL... | metrics URL [TOKEN] | tls DIR NAME NODE | follow DIR NAME@NODE... | move DIR SERVICE COUNT | " +
		"fetch WORD URL... | users PORT SERVICE [DIR NAME] | crash")
	if isKnown && len(args) >= command.fewest && len(args) <= command.most {
		err = command.run(args)
	}
	if err != nil {
		fmt.Println("probe:", err)
		os.Exit(1)
	}
}

// memcached stores another value at each node under the same key, and reads the values when all are stored: nodes share
// nothing.
func memcached(service string) error {
	_, records, err := net.LookupSRV("memcached", "tcp", service)
	if err != nil {
		return err
	}
	var nodes []string
	for _, record := range records {
		nodes = append(nodes, fmt.Sprintf("%s:%d", record.Target, record.Port))
	}
	for _, node := range nodes {
		if _, err := exchange(node, fmt.Sprintf("set probe 0 60 %d\r\n%s", len(node), node), "STORED"); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if _, err := exchange(node, "get probe", fmt.Sprintf("VALUE probe 0 %d", len(node)), node, "END"); err != nil {
			return err
		}
		version, err := exchange(node, "version", "VERSION *")
		if err != nil {
			return err
		}
		fmt.Println(node, version)
	}
	return nil
}

func settings(node string) error {
	connection, err := dial(node, nil)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.WriteString(connection, "stats settings\r\n"); err != nil {
		return err
	}
	lines := bufio.NewScanner(connection)
	for lines.Scan() && lines.Text() != "END" {
		fmt.Println(strings.TrimPrefix(lines.Text(), "STAT "))
	}
	if _, err := io.WriteString(connection, "watch\r\n"); err != nil {
		return err
	}
	lines.Scan()
	fmt.Println("watch", lines.Text())
	return lines.Err()
}

func fill(node, mib string) error {
	count, err := strconv.Atoi(mib)
	if err != nil {
		return err
	}
	value := strings.Repeat("x", 1<<19)
	for i := range 2 * count {
		if _, err := exchange(node, fmt.Sprintf("set fill-%d 0 0 %d\r\n%s", i, len(value), value), "*"); err != nil {
			fmt.Println("the node is away:", err)
			return nil
		}
	}
	fmt.Println("stored")
	return nil
}

func load(node string) error {
	for i := 0; ; i++ {
		_, setErr := exchange(node, fmt.Sprintf("set load-%d 0 0 1\r\nx", i%100), "STORED")
		_, getErr := exchange(node, fmt.Sprintf("get load-%d", i%120), "*")
		if err := errors.Join(setErr, getErr); err != nil {
			fmt.Println(err) // the node may be restarting
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ring is a client that hashes by the names of servers, as clients with consistent hashing do: a key belongs to the
// server whose hash with the key is the highest.
func ring(servers []string) error {
	keys, hits, misses, failures := map[string][]string{}, map[string]int{}, map[string]int{}, map[string]int{}
	for i := range 300 {
		key := fmt.Sprintf("key-%d", i)
		server := slices.MaxFunc(servers, func(a, b string) int { return cmp.Compare(hash(a+key), hash(b+key)) })
		keys[server] = append(keys[server], key)
		if _, err := exchange(server, fmt.Sprintf("set %s 0 0 1\r\nx", key), "STORED"); err != nil {
			return err
		}
	}
	fmt.Println("stored")
	wasAway, inTurn := false, 0 // rounds without an error, after one with an error
	for end := time.Now().Add(4 * time.Minute); inTurn < 20; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("no server was away and came back")
		}
		hasFailed := false
		for _, server := range servers {
			found, err := count(server, keys[server])
			if err != nil {
				failures[server]++
				hasFailed = true
				continue
			}
			hits[server] += found
			misses[server] += len(keys[server]) - found
		}
		inTurn++
		if hasFailed || !wasAway {
			inTurn = 0
		}
		wasAway = wasAway || hasFailed
	}
	for _, server := range servers {
		fmt.Printf("%s: %d hits, %d misses, %d errors\n", server, hits[server], misses[server], failures[server])
	}
	return nil
}

// count returns how many of the keys a server has.
func count(server string, keys []string) (found int, err error) {
	connection, err := net.DialTimeout("tcp", server, time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return 0, err
	}
	if _, err := fmt.Fprintf(connection, "get %s\r\n", strings.Join(keys, " ")); err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		switch {
		case lines.Text() == "END":
			return found, nil
		case strings.HasPrefix(lines.Text(), "VALUE "):
			found++
		}
	}
	return 0, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text)
	return h.Sum64() * 0x9E3779B97F4A7C15 // the last bytes must change the highest bits, too
}

// exchange sends a request to a node in memcached's text protocol (doc/protocol.txt in its source), compares the lines
// of the response with patterns, and returns the last line.
func exchange(node, request string, want ...string) (answer string, err error) {
	connection, err := dial(node, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if _, err := fmt.Fprintf(connection, "%s\r\n", request); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(connection)
	for _, line := range want {
		if !lines.Scan() {
			return "", fmt.Errorf("%s does not answer %q: %w", node, request, cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
		}
		answer = lines.Text()
		if matched, err := path.Match(line, answer); err != nil || !matched {
			return "", fmt.Errorf("%s answers %q with %q, not with %q", node, request, answer, line)
		}
	}
	return answer, nil
}

func get(urls []string) error {
	client := http.Client{Timeout: timeout}
	for _, url := range urls {
		response, err := client.Get(url)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		fmt.Println(url, response.Status)
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
	}
	return nil
}

func metrics(url string, token []string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if len(token) > 0 {
		content, err := os.ReadFile(token[0])
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+string(content))
	}
	client := http.Client{Timeout: timeout, Transport: &http.Transport{
		// By default the certificate of the manager is self-signed.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	fmt.Println(response.StatusCode, strings.Count(string(body), "\n# TYPE "))
	return err
}
