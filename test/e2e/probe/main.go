// Command probe asks operands and operators questions from inside of the cluster, as their clients do. It runs in a pod
// of the end-to-end tests, prints what it was told, and ends with 1 if the answer is not what it should be.
//
//	probe memcached SERVICE    finds the nodes by the SRV records of SERVICE and has each keep a value: a line for each
//	probe http URL...          the first line of the answer's status, for each
//	probe metrics URL [TOKEN]  the status and the number of metrics, with the token in the file TOKEN if it is named
//	probe crash                has process 1 die as by a defect; prints nothing
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

// memcached finds all nodes, has each keep a value of its own under the same key, and asks them for it only when all
// have one: nodes share nothing.
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

// exchange sends a request to a node in memcached's text protocol (doc/protocol.txt in its source) and compares the
// lines of the answer with those that are wanted, which may be patterns. It returns the last.
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
			return "", fmt.Errorf("%s answers %q by %q, not by %q", node, request, answer, line)
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
		// The manager signs its certificate itself unless it is given one.
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
