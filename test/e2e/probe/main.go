// Command probe is a client of operands and operators in a pod of the end-to-end tests. It prints the responses, and
// exits with 1 if one is wrong.
//
//	probe memcached SERVICE    stores and reads a value at each node in the SRV records of SERVICE; prints their versions
//	probe http URL...          prints the status of each response
//	probe metrics URL [TOKEN]  prints the status and the number of metrics; TOKEN is a file with a bearer token
//	probe crash                crashes process 1
package main

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

const timeout = 10 * time.Second

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "memcached":
		err = memcached(args[1])
	case len(args) > 1 && args[0] == "http":
		err = get(args[1:])
	case len(args) > 1 && args[0] == "metrics":
		err = metrics(args[1], args[2:])
	case len(args) == 1 && args[0] == "crash":
		err = syscall.Kill(1, syscall.SIGQUIT)
	default:
		err = errors.New("usage: probe memcached SERVICE | http URL... | metrics URL [TOKEN] | crash")
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

// exchange sends a request to a node in memcached's text protocol (doc/protocol.txt in its source), compares the lines
// of the response with patterns, and returns the last line.
func exchange(node, request string, want ...string) (answer string, err error) {
	connection, err := net.DialTimeout("tcp", node, timeout)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
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
